#include "attention/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attention/hybrid.h"
#include "attention/reference.h"
#include "kernel/kernels.h"
#include "utils/error.h"

namespace minisgl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

template <const char* kName>
std::unique_ptr<AttentionBackend> make_named(Kernels& kernels, KVPool& pool) {
  return std::make_unique<PagedBackend>(kName, kernels, pool);
}
constexpr char kFi[] = "fi", kFa[] = "fa", kCudnn[] = "cudnn", kTrtllm[] = "trtllm", kOwn[] = "own";
constexpr BuiltAttention kAll[] = {{kFi, make_named<kFi>},
                                   {kFa, make_named<kFa>},
                                   {kCudnn, make_named<kCudnn>},
                                   {kTrtllm, make_named<kTrtllm>},
                                   {kOwn, make_named<kOwn>}};
constexpr BuiltAttention kFiOnly[] = {{kFi, make_named<kFi>}};
constexpr BuiltAttention kFaAndFi[] = {{kFa, make_named<kFa>}, {kFi, make_named<kFi>}};

const AttentionTarget kCpu = {};
AttentionTarget gpu(int compute_capability, std::span<const BuiltAttention> plugin,
                    DType dtype = DType::kBFloat16) {
  return {.device = Device::cuda(0),
          .dtype = dtype,
          .compute_capability = compute_capability,
          .plugin = plugin};
}

std::string message_of(std::string_view name, const AttentionTarget& target, ErrorKind kind) {
  try {
    validate_attention_backend(name, target);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << name;
    return error.what();
  }
  ADD_FAILURE() << name << " was accepted";
  return {};
}

TEST(AttentionRegistryTest, UnknownNamesAreRefusedWithTheListOfThoseThatWork) {
  EXPECT_THAT(message_of("flash", kCpu, ErrorKind::kInvalidArgument),
              AllOf(HasSubstr("'flash'"), HasSubstr("auto, reference, cpu")));
  for (const char* name : {"", "CPU", "cpu ", "reference;cpu", "fa fi"}) {
    message_of(name, kCpu, ErrorKind::kInvalidArgument);
  }
}

TEST(AttentionRegistryTest, NamesOfOtherProjectsAreAnsweredWithOurs) {
  EXPECT_THAT(message_of("flashinfer", gpu(90, kAll), ErrorKind::kInvalidArgument),
              HasSubstr("'fi'"));
  EXPECT_THAT(message_of("trtllm-gen", gpu(100, kAll), ErrorKind::kInvalidArgument),
              AllOf(HasSubstr("Blackwell"), HasSubstr("'trtllm'")));
  EXPECT_THAT(message_of("trtllm", gpu(100, kAll), ErrorKind::kInvalidArgument),
              AllOf(HasSubstr("SM90"), HasSubstr("SM100"), HasSubstr("trtllm-gen")));
}

TEST(AttentionRegistryTest, APairHasExactlyOneComma) {
  for (const char* name : {"fa,", ",fi", ",", "fa,fi,fa", "fa,,fi"}) {
    EXPECT_THAT(message_of(name, gpu(90, kAll), ErrorKind::kInvalidArgument),
                HasSubstr("exactly one comma"));
  }
  EXPECT_NO_THROW(validate_attention_backend("fa,fi", gpu(90, kAll)));
}

TEST(AttentionRegistryTest, BothHalvesOfAPairMustWork) {
  message_of("fa,flash", gpu(90, kAll), ErrorKind::kInvalidArgument);
  message_of("flash,fa", gpu(90, kAll), ErrorKind::kInvalidArgument);
  message_of("cpu,fi", gpu(90, kAll), ErrorKind::kInvalidArgument);
  EXPECT_THAT(message_of("auto,fi", gpu(90, kAll), ErrorKind::kInvalidArgument),
              HasSubstr("'auto' stands alone"));
}

TEST(AttentionRegistryTest, AnotherDevicesBackendsAreRefused) {
  EXPECT_THAT(message_of("fi", kCpu, ErrorKind::kInvalidArgument),
              AllOf(HasSubstr("NVIDIA"), HasSubstr("the device is cpu")));
  EXPECT_THAT(message_of("cpu", gpu(90, kAll), ErrorKind::kInvalidArgument),
              HasSubstr("the device is cuda:0"));
}

TEST(AttentionRegistryTest, WhatWasNotBuiltSaysSo) {
  EXPECT_THAT(message_of("fa", gpu(90, {}), ErrorKind::kUnsupported),
              AllOf(HasSubstr("not part of this build"), HasSubstr("-DMINISGL_CUDA=ON")));
  EXPECT_THAT(message_of("cudnn", gpu(90, kFiOnly), ErrorKind::kUnsupported),
              HasSubstr("auto, reference, fi"));
}

TEST(AttentionRegistryTest, ListsWhatATargetSupports) {
  EXPECT_THAT(supported_attention_backends(kCpu), ElementsAre("auto", "reference", "cpu"));
  EXPECT_THAT(supported_attention_backends(gpu(90, kAll)),
              ElementsAre("auto", "reference", "fi", "fa", "cudnn", "trtllm", "own"));
  EXPECT_THAT(supported_attention_backends(gpu(80, kAll)),
              ElementsAre("auto", "reference", "fi", "cudnn"));
}

struct ResolveCase {
  const char* name;
  const char* asked;
  AttentionTarget target;
  const char* resolved;
};
class AttentionResolve : public ::testing::TestWithParam<ResolveCase> {};

TEST_P(AttentionResolve, GivesTheBackendOrPairToCreate) {
  const ResolveCase& c = GetParam();
  EXPECT_EQ(resolve_attention_backend(c.asked, c.target).name, c.resolved);
}

INSTANTIATE_TEST_SUITE_P(Registry, AttentionResolve,
                         ::testing::ValuesIn(std::vector<ResolveCase>{
                             {"AutoOnCpu", "auto", kCpu, "cpu"},
                             {"AutoOnHopper", "auto", gpu(90, kAll), "fa,cudnn"},
                             {"AutoOnHopperWithoutCudnn", "auto", gpu(90, kFaAndFi), "fa,fi"},
                             {"AutoOnHopperWithFiOnly", "auto", gpu(90, kFiOnly), "fi"},
                             {"AutoOnAmpere", "auto", gpu(80, kAll), "fi"},
                             {"AutoOnBlackwell", "auto", gpu(100, kAll), "fi"},
                             {"AutoWithNothingBuilt", "auto", gpu(90, {}), "reference"},
                             {"UpstreamsName", "torch", kCpu, "reference"},
                             {"EqualNamesCollapse", "fi,fi", gpu(90, kAll), "fi"},
                             {"EqualByAliasCollapse", "torch,reference", kCpu, "reference"},
                             {"APairStays", "fa,fi", gpu(90, kAll), "fa,fi"},
                             {"APairOnTheCpu", "cpu,torch", kCpu, "cpu,reference"},
                             {"Float32OnAGpu", "fa", gpu(90, kAll, DType::kFloat32), "reference"},
                             {"AutoFloat32OnAGpu", "auto", gpu(90, kAll, DType::kFloat32),
                              "reference"},
                         }),
                         [](const auto& info) { return info.param.name; });

TEST(AttentionRegistryTest, SaysWhyItTookSomethingElse) {
  EXPECT_THAT(resolve_attention_backend("fa", gpu(90, kAll, DType::kFloat32)).note,
              HasSubstr("float32"));
  EXPECT_THAT(resolve_attention_backend("fa", gpu(90, kAll)).note, IsEmpty());
  EXPECT_THAT(resolve_attention_backend("auto", gpu(90, kAll)).note, HasSubstr("fa,cudnn"));
}

struct CreateTest : ::testing::Test {
  std::unique_ptr<Kernels> kernels = make_reference_kernels();
  KVPool pool{*kernels, {.num_layers = 1, .num_pages = 1, .num_kv_heads = 1, .head_dim = 1}};
};

TEST_F(CreateTest, EqualPairsBecomeOneBackend) {
  const auto one = create_attention_backend("reference,torch", kCpu, *kernels, pool);
  EXPECT_EQ(one->name(), "reference");
  EXPECT_EQ(dynamic_cast<HybridBackend*>(one.get()), nullptr);
  const auto two = create_attention_backend("reference,cpu", kCpu, *kernels, pool);
  EXPECT_EQ(two->name(), "reference,cpu");
  EXPECT_NE(dynamic_cast<HybridBackend*>(two.get()), nullptr);
}

TEST_F(CreateTest, AutoMustBeResolvedFirst) {
  EXPECT_THROW(create_attention_backend("auto", kCpu, *kernels, pool), Error);
}

TEST_F(CreateTest, ThePluginsBackendsAreMadeByIt) {
  EXPECT_EQ(create_attention_backend("fa,cudnn", gpu(90, kAll), *kernels, pool)->name(),
            "fa,cudnn");
}

}  // namespace
}  // namespace minisgl
