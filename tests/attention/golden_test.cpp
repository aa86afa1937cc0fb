// Paged, ragged attention against expectations computed in double precision elsewhere.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "attention/paged_world.h"
#include "attention/reference.h"
#include "attention/test_kernels.h"
#include "goldens.h"
#include "loader/safetensors.h"
#include "utils/error.h"

namespace minisgl {
namespace {

using testing::all_kernels;
using testing::max_difference;
using testing::NamedKernels;

// One file: a call's inputs, the pool before it, and what should come out.
class Golden {
 public:
  explicit Golden(const std::string& path) : file_(SafetensorsFile::open(path)) {
    spec.num_qo_heads = view("q").dim(1);
    spec.num_kv_heads = view("k").dim(1);
    spec.head_dim = view("q").dim(2);
    spec.scale = number("scale");
    spec.softcap = number("softcap");
    spec.window = static_cast<int64_t>(number("window"));
    if (file_.find("sinks") != nullptr) spec.sinks = view("sinks");
    page_size = static_cast<int64_t>(number("page_size"));
  }

  TensorView view(const std::string& name) const {
    const SafetensorsTensor* tensor = file_.find(name);
    MINISGL_CHECK(tensor != nullptr && tensor->dtype, "{} has no {}", file_.path(), name);
    return TensorView(const_cast<std::byte*>(tensor->data.data()), *tensor->dtype, tensor->shape);
  }
  template <class T>
  std::span<const T> values(const std::string& name) const {
    return view(name).values<const T>();
  }
  float number(const std::string& key) const { return std::stof(file_.metadata().at(key)); }

  AttentionSpec spec;
  int64_t page_size = 1;

 private:
  SafetensorsFile file_;
};

// The pool as it was before the call.
KVPool filled_pool(Kernels& kernels, const Golden& golden) {
  const TensorView k = golden.view("k_pool");
  KVPool pool(kernels, {.num_layers = 1,
                        .num_pages = k.dim(0) / golden.page_size,
                        .page_size = golden.page_size,
                        .num_kv_heads = golden.spec.num_kv_heads,
                        .head_dim = golden.spec.head_dim});
  kernels.copy(pool.k(0).slice(0, k.dim(0)), k);
  kernels.copy(pool.v(0).slice(0, k.dim(0)), golden.view("v_pool"));
  return pool;
}

std::vector<Req> requests_of(const Golden& golden) {
  const auto lengths = golden.values<int32_t>("seq_lens");
  const auto cached = golden.values<int32_t>("cached_lens");
  std::vector<Req> reqs(lengths.size());
  for (size_t i = 0; i < reqs.size(); ++i) {
    reqs[i].table_idx = static_cast<int32_t>(i);
    reqs[i].cached_len = cached[i];
    reqs[i].device_len = lengths[i];
  }
  return reqs;
}

class AttentionGoldens : public ::testing::TestWithParam<std::string> {
 protected:
  float tolerance() const {
    return GetParam().find("large_logits") == std::string::npos ? 1e-5f : 1e-4f;
  }
};

TEST_P(AttentionGoldens, TheBackendStoresAndAttends) {
  const Golden golden(GetParam());
  for (const NamedKernels& tested : all_kernels()) {
    KVPool pool = filled_pool(*tested.kernels, golden);
    PagedBackend backend(tested.name, *tested.kernels, pool);
    std::vector<Req> reqs = requests_of(golden);
    Batch batch;
    for (Req& req : reqs) batch.padded_reqs.push_back(&req);
    batch.out_loc = golden.view("out_loc");
    batch.page_table = golden.view("page_table");
    backend.prepare_metadata(batch);
    const Tensor out = Tensor::zeros(DType::kFloat32, golden.view("q").shape());
    backend.forward(out, golden.view("q"), golden.view("k"), golden.view("v"), golden.spec, batch);
    EXPECT_LE(max_difference(out.view().values<float>(), golden.values<float>("out")), tolerance())
        << tested.name;
  }
}

TEST_P(AttentionGoldens, TheKernelGivesTheLogarithmOfTheDenominatorToo) {
  const Golden golden(GetParam());
  for (const NamedKernels& tested : all_kernels()) {
    KVPool pool = filled_pool(*tested.kernels, golden);
    pool.store(golden.view("k"), golden.view("v"), golden.view("out_loc"), 0);
    std::vector<Req> reqs = requests_of(golden);
    Batch batch;
    for (Req& req : reqs) batch.padded_reqs.push_back(&req);
    batch.page_table = golden.view("page_table");
    AttentionMetadata metadata;
    fill_metadata(metadata, batch);

    const Tensor out = Tensor::zeros(DType::kFloat32, golden.view("out").shape());
    const Tensor lse = Tensor::zeros(DType::kFloat32, golden.view("lse").shape());
    PagedAttentionArgs args;
    args.out = out;
    args.q = golden.view("q");
    args.k_pool = pool.k(0);
    args.v_pool = pool.v(0);
    args.cu_seqlens_q = TensorView::of(std::span(metadata.cu_seqlens_q));
    args.cache_seqlens = TensorView::of(std::span(metadata.cache_seqlens));
    args.page_table = golden.view("page_table");
    args.sinks = golden.spec.sinks;
    args.lse = lse;
    args.max_seqlen_q = metadata.max_seqlen_q;
    args.max_seqlen_k = metadata.max_seqlen_k;
    args.scale = golden.spec.scale;
    args.softcap = golden.spec.softcap;
    args.window = golden.spec.window;
    tested.kernels->paged_attention(args);
    EXPECT_LE(max_difference(out.view().values<float>(), golden.values<float>("out")), tolerance())
        << tested.name;
    // Half a unit in the last place of float32 on top: 1.2e-4 above 2048.
    float largest = 0.0f;
    for (const float x : golden.values<float>("lse")) largest = std::max(largest, std::abs(x));
    EXPECT_LE(max_difference(lse.view().values<float>(), golden.values<float>("lse")),
              tolerance() + largest * 6e-8f)
        << tested.name;
  }
}

// The committed selection, and the whole set where it is present.
std::vector<std::string> golden_files() {
  std::vector<std::string> dirs = {testing::test_data_dir() + "/attention"};
  if (const auto goldens = testing::goldens_dir()) dirs.push_back(*goldens + "/attention");
  std::vector<std::string> files;
  for (const std::string& dir : dirs) {
    for (const auto& entry : std::filesystem::directory_iterator(dir)) {
      if (entry.path().extension() == ".safetensors") files.push_back(entry.path().string());
    }
  }
  std::ranges::sort(files);
  return files;
}

INSTANTIATE_TEST_SUITE_P(Files, AttentionGoldens, ::testing::ValuesIn(golden_files()),
                         [](const auto& info) {
                           return fmt::format("{}_{}",
                                              std::filesystem::path(info.param).stem().string(),
                                              info.index);
                         });

}  // namespace
}  // namespace minisgl
