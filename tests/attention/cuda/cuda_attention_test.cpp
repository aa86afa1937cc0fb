// The GPU's attention backends against `reference` on the GPU (bfloat16, same inputs), and all of
// them against the golden calls.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "attention/cuda/gpu_world.h"
#include "attention/cuda_backends.h"
#include "attention/reference.h"
#include "goldens.h"
#include "kernel/cuda_plugin.h"
#include "loader/safetensors.h"
#include "utils/error.h"

namespace minisgl {
namespace {

using testing::GpuCase;
using testing::GpuWorld;
using testing::relative_error;

// bfloat16 keeps 8 bits: two kernels that round P and the output apart differ by about 3e-3.
constexpr double kBf16Tolerance = 6e-3;

class CudaAttention : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (cuda_device_count() == 0) return;
    gpu_ = make_cuda_kernels(0).release();
    std::printf("on %s\n", gpu_->description().c_str());
  }
  static void TearDownTestSuite() {
    delete gpu_;
    gpu_ = nullptr;
  }
  void SetUp() override {
    if (gpu_ == nullptr) GTEST_SKIP() << "no NVIDIA GPU here";
  }

  // Why the backend must say no to a call, or empty: the limits that docs/gpu.md states.
  static std::string expected_refusal(std::string_view name, int64_t head_dim, float softcap,
                                      bool sinks, bool decode, int64_t page_size) {
    if (name == "fi" && head_dim != 64 && head_dim != 128) return "head dimensions";
    if (name == "fa" && head_dim != 128) return "head dimension";
    if (name == "fa" && sinks) return "sinks";
    if (name == "fa" && softcap > 0) return "softcap";
    if (name == "cudnn" && page_size == 3) return "power of two";
    if (name == "cudnn" && !decode) return "only decodes";
    return "";
  }

  static Kernels* gpu_;
};
Kernels* CudaAttention::gpu_ = nullptr;

// Runs f with the backend; whether it refused, which must be as expected.
template <class F>
bool runs(const BuiltAttention& built, Kernels& gpu, KVPool& pool, const std::string& expected,
          F&& f) {
  try {
    const auto backend = built.make(gpu, pool);
    f(*backend);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported) << error.what();
    EXPECT_FALSE(expected.empty()) << error.what();
    EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
    return false;
  }
  EXPECT_TRUE(expected.empty()) << built.name << " should have refused: " << expected;
  return true;
}

std::vector<GpuCase> random_cases() {
  std::vector<GpuCase> cases;
  for (const int64_t page : {1, 3, 16, 64, 128}) {
    for (const int64_t head_dim : {64, 128}) {
      const auto add = [&](const std::string& name, std::vector<int64_t> n, std::vector<int64_t> k,
                           int64_t hq, int64_t hkv) -> GpuCase& {
        GpuCase c;
        c.name = fmt::format("{} d{} page {}", name, head_dim, page);
        c.new_tokens = std::move(n);
        c.keys = std::move(k);
        c.num_qo_heads = hq;
        c.num_kv_heads = hkv;
        c.head_dim = head_dim;
        c.page_size = page;
        cases.push_back(c);
        return cases.back();
      };
      const std::vector<int64_t> one(7, 1), uneven = {1, 5, 64, 65, 200, 513, 3000};
      for (const int64_t group : {1, 2, 4, 5, 7, 8}) {
        add(fmt::format("decode group {}", group), one, uneven, 4 * group, 4);
      }
      const std::vector<int64_t> n = {1, 33, 128, 7, 200, 1}, k = {77, 33, 300, 640, 201, 1};
      add("mixed", n, k, 16, 8);
      add("mixed, a request without new tokens", {5, 0, 90}, {70, 64, 90}, 8, 2);
      add("prefill", {300, 17, 129}, {300, 17, 129}, 8, 8);
      add("window", n, k, 16, 8).window = 64;
      add("decode window", one, uneven, 8, 4).window = 48;
      add("softcap", n, k, 16, 8).softcap = 20.0f;
      add("softcap and window", n, k, 8, 8).softcap = 20.0f;
      cases.back().window = 32;
      add("sinks", n, k, 16, 8).sinks = true;
      add("sinks and window", n, k, 16, 4).sinks = true;
      cases.back().window = 64;
    }
  }
  return cases;
}

TEST_F(CudaAttention, BackendsAgreeWithTheReferenceOnRaggedBatches) {
  std::map<std::string, std::pair<double, int>> worst, refused;
  for (const GpuCase& c : random_cases()) {
    GpuWorld world(*gpu_, c);
    PagedBackend reference("reference", *gpu_, world.pool());
    const std::vector<float> expected = world.run(reference);
    for (const BuiltAttention& built : cuda_attention_backends()) {
      const std::string name(built.name);
      const bool ran = runs(built, *gpu_, world.pool(),
                            expected_refusal(name, c.head_dim, c.softcap, c.sinks,
                                             std::ranges::max(c.new_tokens) == 1, c.page_size),
                            [&](AttentionBackend& backend) {
                              for (int round = 0; round < 2; ++round) {  // metadata is reused
                                const double error = relative_error(world.run(backend), expected);
                                EXPECT_LE(error, kBf16Tolerance) << name << ": " << c.name;
                                EXPECT_FALSE(std::isnan(error)) << name << ": " << c.name;
                                worst[name].first = std::max(worst[name].first, error);
                              }
                            });
      ++(ran ? worst : refused)[name].second;
    }
  }
  for (const auto& [name, result] : worst) {
    std::printf("  %s: %d cases, worst relative error %.2e; refused %d\n", name.c_str(),
                result.second, result.first, refused[name].second);
  }
}

// The data flow of captured graphs: static metadata of a padded size, refreshed before each replay.
TEST_F(CudaAttention, StaticMetadataServesEveryReplay) {
  for (const int64_t page : {1, 16}) {
    for (const BuiltAttention& built : cuda_attention_backends()) {
      GpuCase c;
      c.page_size = page;
      c.new_tokens.assign(4, 1);
      c.keys = {900, 17, 300, 64};
      GpuWorld world(*gpu_, c);
      PagedBackend reference("reference", *gpu_, world.pool());
      const auto backend = built.make(*gpu_, world.pool());
      const int sizes[] = {1, 4, 8};
      backend->init_capture_graph(2048, sizes);
      Batch captured;
      captured.padded_reqs = world.batch().padded_reqs;
      captured.page_table = world.batch().page_table;
      captured.phase = Phase::kDecode;
      backend->prepare_for_capture(captured);
      for (const int64_t shorter : {0, 3, 16}) {  // other lengths than were captured
        for (size_t i = 0; i < c.keys.size(); ++i) {
          world.requests()[i].device_len = c.keys[i] - shorter;
          world.requests()[i].cached_len = c.keys[i] - shorter - 1;
        }
        const std::vector<float> expected = world.run(reference);
        backend->prepare_metadata(world.batch());
        backend->prepare_for_replay(world.batch());
        std::swap(world.batch().attn_metadata, captured.attn_metadata);
        world.forward(*backend);
        std::swap(world.batch().attn_metadata, captured.attn_metadata);
        const double error = relative_error(testing::download_bf16(*gpu_, world.out()), expected);
        EXPECT_LE(error, kBf16Tolerance) << built.name << " page " << page << " - " << shorter;
      }
    }
  }
}

class Golden {
 public:
  explicit Golden(const std::string& path) : file_(SafetensorsFile::open(path)) {}
  TensorView view(const std::string& name) const {
    const SafetensorsTensor* tensor = file_.find(name);
    MINISGL_CHECK(tensor != nullptr && tensor->dtype, "{} has no {}", file_.path(), name);
    return TensorView(const_cast<std::byte*>(tensor->data.data()), *tensor->dtype, tensor->shape);
  }
  bool has(const std::string& name) const { return file_.find(name) != nullptr; }
  float number(const std::string& key) const { return std::stof(file_.metadata().at(key)); }

 private:
  SafetensorsFile file_;
};

std::vector<std::string> golden_files() {
  std::vector<std::string> dirs = {testing::test_data_dir() + "/attention"};
  if (const auto goldens = testing::goldens_dir()) dirs.push_back(*goldens + "/attention");
  std::vector<std::string> files;
  for (const std::string& dir : dirs) {
    if (!std::filesystem::is_directory(dir)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(dir)) {
      if (entry.path().extension() == ".safetensors") files.push_back(entry.path().string());
    }
  }
  std::ranges::sort(files);
  return files;
}

// A golden call on the GPU in one dtype.
class GoldenOnGpu {
 public:
  GoldenOnGpu(Kernels& gpu, const Golden& golden, DType dtype)
      : gpu_(gpu),
        pool_(gpu, {.num_layers = 1,
                    .num_pages = golden.view("k_pool").dim(0) /
                                 static_cast<int64_t>(golden.number("page_size")),
                    .page_size = static_cast<int64_t>(golden.number("page_size")),
                    .num_kv_heads = golden.view("k").dim(1),
                    .head_dim = golden.view("q").dim(2),
                    .dtype = dtype}) {
    upload(pool_.k(0).slice(0, golden.view("k_pool").dim(0)), golden.view("k_pool"));
    upload(pool_.v(0).slice(0, golden.view("k_pool").dim(0)), golden.view("v_pool"));
    q_ = on_gpu(golden.view("q"), dtype);
    k_ = on_gpu(golden.view("k"), dtype);
    v_ = on_gpu(golden.view("v"), dtype);
    out_ = gpu.allocate(dtype, golden.view("q").shape());
    spec_.num_qo_heads = golden.view("q").dim(1);
    spec_.num_kv_heads = golden.view("k").dim(1);
    spec_.head_dim = golden.view("q").dim(2);
    spec_.scale = golden.number("scale");
    spec_.softcap = golden.number("softcap");
    spec_.window = static_cast<int64_t>(golden.number("window"));
    if (golden.has("sinks")) {
      sinks_ = on_gpu(golden.view("sinks"), DType::kFloat32);
      spec_.sinks = sinks_;
    }
    const auto lengths = golden.view("seq_lens").values<int32_t>();
    const auto cached = golden.view("cached_lens").values<int32_t>();
    reqs_.resize(lengths.size());
    for (size_t i = 0; i < reqs_.size(); ++i) {
      reqs_[i].table_idx = static_cast<int32_t>(i);
      reqs_[i].cached_len = cached[i];
      reqs_[i].device_len = lengths[i];
      batch_.padded_reqs.push_back(&reqs_[i]);
    }
    batch_.out_loc = golden.view("out_loc");
    batch_.page_table = golden.view("page_table");
  }

  KVPool& pool() { return pool_; }
  const AttentionSpec& spec() const { return spec_; }
  bool is_decode() const {
    return std::ranges::all_of(reqs_, [](const Req& req) { return req.extend_len() == 1; });
  }
  std::vector<float> run(AttentionBackend& backend) {
    backend.prepare_metadata(batch_);
    backend.forward(out_, q_, k_, v_, spec_, batch_);
    if (out_.view().dtype() == DType::kBFloat16) return testing::download_bf16(gpu_, out_);
    std::vector<float> values(static_cast<size_t>(out_.view().numel()));
    gpu_.copy(TensorView(values.data(), DType::kFloat32, out_.view().shape()), out_);
    gpu_.synchronize();
    return values;
  }

 private:
  void upload(TensorView to, TensorView from) {
    if (to.dtype() == DType::kBFloat16) {
      testing::upload_bf16(gpu_, to, from.values<float>());
    } else {
      gpu_.copy(to, from);
    }
  }
  Tensor on_gpu(TensorView from, DType dtype) {
    Tensor tensor = gpu_.allocate(dtype, from.shape());
    upload(tensor, from);
    return tensor;
  }

  Kernels& gpu_;
  KVPool pool_;
  AttentionSpec spec_;
  Tensor q_, k_, v_, out_, sinks_;
  std::vector<Req> reqs_;
  Batch batch_;
};

TEST_F(CudaAttention, GoldenCalls) {
  for (const std::string& file : golden_files()) {
    const std::string name = std::filesystem::path(file).stem().string();
    const Golden golden(file);
    const std::span<const float> expected = golden.view("out").values<float>();

    GoldenOnGpu exact(*gpu_, golden, DType::kFloat32);
    PagedBackend float32("reference", *gpu_, exact.pool());
    const std::vector<float> got = exact.run(float32);
    float largest = 0.0f;
    for (size_t i = 0; i < got.size(); ++i) {
      const float difference = std::abs(got[i] - expected[i]);
      if (!(difference <= largest)) largest = difference;
    }
    EXPECT_LE(largest, name.starts_with("large_logits") ? 1e-4f : 1e-5f) << name;
    std::printf("  %-28s reference float32 %.1e", name.c_str(), static_cast<double>(largest));

    GoldenOnGpu rounded(*gpu_, golden, DType::kBFloat16);
    PagedBackend bf16("reference", *gpu_, rounded.pool());
    const std::vector<float> same_inputs = rounded.run(bf16);
    std::printf("  bf16 %.1e", relative_error(same_inputs, expected));
    for (const BuiltAttention& built : cuda_attention_backends()) {
      const AttentionSpec& spec = rounded.spec();
      const bool ran =
          runs(built, *gpu_, rounded.pool(),
               expected_refusal(built.name, spec.head_dim, spec.softcap, !spec.sinks.empty(),
                                rounded.is_decode(), rounded.pool().config().page_size),
               [&](AttentionBackend& backend) {
                 const std::vector<float> result = rounded.run(backend);
                 const double error = relative_error(result, same_inputs);
                 EXPECT_LE(error, kBf16Tolerance) << built.name << ": " << name;
                 EXPECT_FALSE(std::isnan(error)) << built.name << ": " << name;
                 std::printf("  %s %.1e (to reference %.1e)", std::string(built.name).c_str(),
                             relative_error(result, expected), error);
               });
      if (!ran) std::printf("  %s refused", std::string(built.name).c_str());
    }
    std::printf("\n");
  }
}

}  // namespace
}  // namespace minisgl
