#include "attention/reference.h"

#include <gtest/gtest.h>

#include "attention/paged_world.h"
#include "attention/test_kernels.h"
#include "attention/watched_kernels.h"
#include "utils/error.h"

namespace minisgl {
namespace {

using testing::all_kernels;
using testing::max_difference;
using testing::NamedKernels;
using testing::PagedWorld;
using testing::Projections;
using testing::random_projections;
using testing::WatchedKernels;

// Layer 5 of Qwen3-0.6B.
AttentionSpec qwen3_layer() {
  AttentionSpec spec;
  spec.layer = 5;
  spec.num_qo_heads = 16;
  spec.num_kv_heads = 8;
  spec.head_dim = 128;
  spec.scale = 1.0f / std::sqrt(128.0f);
  return spec;
}

AttentionSpec small_layer() {
  AttentionSpec spec;
  spec.num_qo_heads = 4;
  spec.num_kv_heads = 2;
  spec.head_dim = 64;
  spec.scale = 0.125f;
  return spec;
}

TEST(PagedBackendTest, AMixedBatchWithAPrefixHitEqualsCompleteAttention) {
  const AttentionSpec spec = qwen3_layer();
  for (const NamedKernels& tested : all_kernels()) {
    PagedWorld world(*tested.kernels, spec, 1, 64, 3, 64);
    PagedBackend backend(tested.name, *tested.kernels, world.pool());
    Req& a = world.add(random_projections(6, spec, 1), 6, 0);
    Req& b = world.add(random_projections(7, spec, 2), 7, 4);
    Req& c = world.add(random_projections(9, spec, 3), 9, 8);
    const std::vector<float>& out = world.run(backend, {&a, &b, &c}, Phase::kPrefill);
    EXPECT_LE(max_difference(out, world.expected({&a, &b, &c})), 1e-5f) << tested.name;
    std::vector<int32_t> last;
    world.batch().attn_metadata->last_indices(last, 3);
    EXPECT_EQ(last, (std::vector<int32_t>{5, 8, 9}));
    for (int layer = 0; layer < 5; ++layer) {
      for (const float x : world.pool().k(layer).values<float>()) ASSERT_EQ(x, 0.0f) << layer;
    }
  }
}

TEST(PagedBackendTest, DecodeOfTheWholeBatchEqualsCompleteAttention) {
  const AttentionSpec spec = small_layer();
  for (const NamedKernels& tested : all_kernels()) {
    PagedWorld world(*tested.kernels, spec, 4, 64, 4, 96);
    PagedBackend backend(tested.name, *tested.kernels, world.pool());
    std::vector<Req*> reqs;
    for (const int64_t length : {1, 33, 80, 7}) {
      reqs.push_back(&world.add(random_projections(length, spec, static_cast<uint32_t>(length)),
                                length, length - 1));
    }
    const std::vector<float>& out = world.run(backend, reqs, Phase::kDecode);
    EXPECT_LE(max_difference(out, world.expected(reqs)), 1e-5f) << tested.name;
  }
}

TEST(PagedBackendTest, WritesFirstAndAttendsOnceForTheWholeBatch) {
  const AttentionSpec spec = small_layer();
  const auto reference = make_reference_kernels();
  WatchedKernels kernels(*reference);
  PagedWorld world(kernels, spec, 4, 64, 4, 64);
  PagedBackend backend("watched", kernels, world.pool());
  std::vector<Req*> reqs;
  for (uint32_t seed = 1; seed <= 3; ++seed) {
    reqs.push_back(&world.add(random_projections(8, spec, seed), 8, 7));
  }
  kernels.calls.clear();
  world.run(backend, reqs, Phase::kDecode);
  EXPECT_EQ(kernels.calls, (std::vector<std::string>{"store", "store", "attend"}));
}

// Prefill reads its own keys and decode its own last key from the pool: both are wrong without the
// store, so a result that equals complete attention proves the order.
TEST(PagedBackendTest, AForgottenStoreGivesAWrongResult) {
  const AttentionSpec spec = small_layer();
  const auto reference = make_reference_kernels();
  for (const Phase phase : {Phase::kPrefill, Phase::kDecode}) {
    WatchedKernels kernels(*reference);
    PagedWorld world(kernels, spec, 1, 64, 4, 64);
    PagedBackend backend("watched", kernels, world.pool());
    const int64_t cached = phase == Phase::kPrefill ? 4 : 8;
    Req& req = world.add(random_projections(9, spec, 1), 9, cached);
    kernels.forget_store = true;
    EXPECT_GT(max_difference(world.run(backend, {&req}, phase), world.expected({&req})), 1e-2f);
    kernels.forget_store = false;
    EXPECT_LE(max_difference(world.run(backend, {&req}, phase), world.expected({&req})), 1e-5f);
  }
}

TEST(PagedBackendTest, ARequestWithoutANewTokenChangesNothingForTheOthers) {
  const AttentionSpec spec = small_layer();
  for (const NamedKernels& tested : all_kernels()) {
    PagedWorld world(*tested.kernels, spec, 4, 64, 4, 64);
    PagedBackend backend(tested.name, *tested.kernels, world.pool());
    Req& a = world.add(random_projections(6, spec, 1), 6, 2);
    Req& idle = world.add(random_projections(5, spec, 2), 5, 5);
    Req& b = world.add(random_projections(9, spec, 3), 9, 8);
    for (const std::vector<Req*>& reqs :
         {std::vector<Req*>{&a, &idle, &b}, {&idle, &a, &b}, {&a, &b, &idle}}) {
      EXPECT_LE(max_difference(world.run(backend, reqs, Phase::kPrefill), world.expected(reqs)),
                1e-5f)
          << tested.name;
    }
  }
}

TEST(PagedBackendTest, WindowSoftcapAndSinksReachTheKernel) {
  std::vector<float> sinks = {0.5f, -1.0f, 2.0f, 0.0f};
  for (const NamedKernels& tested : all_kernels()) {
    for (int which = 0; which < 3; ++which) {
      AttentionSpec spec = small_layer();
      if (which == 0) spec.window = 5;
      if (which == 1) spec.softcap = 1.5f;
      if (which == 2) spec.sinks = TensorView::of(std::span(sinks));
      PagedWorld world(*tested.kernels, spec, 4, 64, 4, 64);
      PagedBackend backend(tested.name, *tested.kernels, world.pool());
      Req& a = world.add(random_projections(20, spec, 1), 20, 0);
      Req& b = world.add(random_projections(33, spec, 2), 33, 32);
      EXPECT_LE(
          max_difference(world.run(backend, {&a, &b}, Phase::kPrefill), world.expected({&a, &b})),
          1e-5f)
          << tested.name << " " << which;
    }
  }
}

// ---- the equivalence contract: the same bits whatever surrounds a row ----

// The output rows of one sequence, computed in chunks of `chunk` tokens on pages of `page_size`,
// each time together with `company` other requests.
std::vector<float> rows_computed(Kernels& kernels, const AttentionSpec& spec, int64_t chunk,
                                 int64_t page_size, int company,
                                 DType pool_dtype = DType::kFloat32) {
  constexpr int64_t kLength = 150;
  PagedWorld world(kernels, spec, page_size, 1024 / page_size, company + 1, 192, pool_dtype);
  PagedBackend backend("tested", kernels, world.pool());
  std::vector<Req*> reqs;
  for (int i = 0; i < company; ++i) {
    const int64_t length = 10 + 23 * i;
    reqs.push_back(&world.add(random_projections(length, spec, 50 + static_cast<uint32_t>(i)),
                              length, i % 2 == 0 ? 0 : length - 1));
  }
  Req& req = world.add(random_projections(kLength, spec, 9), kLength, 0);
  reqs.insert(reqs.begin() + company / 2, &req);

  std::vector<float> rows;
  for (int64_t begin = 0; begin < kLength; begin += chunk) {
    req.cached_len = begin;
    req.device_len = std::min(kLength, begin + chunk);
    const std::vector<float>& out = world.run(backend, reqs, Phase::kPrefill);
    const auto& cu = world.batch().attn_metadata->cu_seqlens_q;
    const auto row = static_cast<size_t>(spec.num_qo_heads * spec.head_dim);
    const auto at = static_cast<size_t>(company / 2);
    rows.insert(rows.end(), out.begin() + static_cast<std::ptrdiff_t>(cu[at] * row),
                out.begin() + static_cast<std::ptrdiff_t>(cu[at + 1] * row));
  }
  return rows;
}

TEST(PagedBackendTest, ARowHasTheSameBitsWhateverTheChunkThePageSizeAndTheCompany) {
  const AttentionSpec spec = small_layer();
  for (const NamedKernels& tested : all_kernels()) {
    const std::vector<float> alone = rows_computed(*tested.kernels, spec, 150, 1, 0);
    for (const int64_t chunk : {1, 7, 64, 150}) {
      for (const int64_t page_size : {1, 4, 16, 64}) {
        for (const int company : {0, 3}) {
          EXPECT_EQ(rows_computed(*tested.kernels, spec, chunk, page_size, company), alone)
              << tested.name << ": chunk " << chunk << ", page " << page_size << ", company "
              << company;
        }
      }
    }
  }
}

TEST(PagedBackendTest, SixteenBitPoolsAreReadAlikeByAllKernels) {
  const AttentionSpec spec = small_layer();
  const auto reference = make_reference_kernels();
  for (const DType dtype : {DType::kBFloat16, DType::kFloat16}) {
    const std::vector<float> truth = rows_computed(*reference, spec, 150, 1, 0, dtype);
    for (const NamedKernels& tested : all_kernels()) {
      const std::vector<float> alone = rows_computed(*tested.kernels, spec, 150, 1, 0, dtype);
      EXPECT_LE(max_difference(alone, truth), 1e-5f) << tested.name << " " << dtype_name(dtype);
      EXPECT_EQ(rows_computed(*tested.kernels, spec, 7, 16, 3, dtype), alone)
          << tested.name << " " << dtype_name(dtype);
    }
  }
}

// Scores of hundreds to thousands: in float32 their last bits alone would move weights by 1e-4.
TEST(PagedBackendTest, LargeScoresLoseNothing) {
  AttentionSpec spec = small_layer();
  spec.scale = 64.0f;
  for (const NamedKernels& tested : all_kernels()) {
    PagedWorld world(*tested.kernels, spec, 16, 64, 4, 160);
    PagedBackend backend(tested.name, *tested.kernels, world.pool());
    Req& a = world.add(random_projections(60, spec, 1), 60, 0);
    Req& b = world.add(random_projections(150, spec, 2), 150, 149);
    EXPECT_LE(
        max_difference(world.run(backend, {&a, &b}, Phase::kPrefill), world.expected({&a, &b})),
        2e-5f)
        << tested.name;
    const std::vector<float> alone = rows_computed(*tested.kernels, spec, 150, 1, 0);
    EXPECT_EQ(rows_computed(*tested.kernels, spec, 7, 16, 3), alone) << tested.name;
  }
}

TEST(PagedBackendTest, ABatchThatWasNotPreparedIsNoticed) {
  const AttentionSpec spec = small_layer();
  const auto kernels = make_reference_kernels();
  PagedWorld world(*kernels, spec, 4, 64, 4, 64);
  PagedBackend backend("one", *kernels, world.pool());
  PagedBackend other("other", *kernels, world.pool());
  Req& req = world.add(random_projections(6, spec, 1), 6, 2);
  Batch& batch = world.pack({&req}, Phase::kPrefill);
  EXPECT_THROW(backend.forward(world.out(), world.q(), world.k(), world.v(), spec, batch), Error);
  other.prepare_metadata(batch);
  EXPECT_THROW(backend.forward(world.out(), world.q(), world.k(), world.v(), spec, batch), Error);
}

TEST(PagedBackendTest, MetadataIsReusedFromStepToStep) {
  const AttentionSpec spec = small_layer();
  const auto kernels = make_reference_kernels();
  PagedWorld world(*kernels, spec, 4, 64, 4, 64);
  PagedBackend backend("one", *kernels, world.pool());
  Req& req = world.add(random_projections(20, spec, 1), 20, 2);
  backend.prepare_metadata(world.pack({&req}, Phase::kPrefill));
  const AttentionMetadata* first = world.batch().attn_metadata.get();
  backend.prepare_metadata(world.pack({&req}, Phase::kPrefill));
  EXPECT_EQ(world.batch().attn_metadata.get(), first);
}

// A GPU in all but fact: memory that only it may touch, and a record of what went up.
class PretendedGpu : public WatchedKernels {
 public:
  using WatchedKernels::WatchedKernels;
  Device device() const override { return Device::cuda(0); }
  Tensor allocate(DType dtype, std::span<const int64_t> shape) override {
    calls.push_back("allocate");
    auto memory = std::make_shared<Tensor>(Tensor::zeros(dtype, shape));
    const TensorView on_gpu(memory->view().raw(), dtype, shape, device());
    return Tensor(on_gpu, [memory](void*) {});
  }
  void copy(TensorView dst, TensorView src) override {
    EXPECT_EQ(dst.device(), device());
    calls.push_back("upload");
    WatchedKernels::copy(on_host(dst), src);
  }
  void store_kv(TensorView pool, TensorView rows, TensorView loc) override {
    WatchedKernels::store_kv(on_host(pool), rows, loc);
  }
  void paged_attention(const PagedAttentionArgs& args) override {
    PagedAttentionArgs host = args;
    for (TensorView PagedAttentionArgs::*view :
         {&PagedAttentionArgs::k_pool, &PagedAttentionArgs::v_pool,
          &PagedAttentionArgs::cu_seqlens_q, &PagedAttentionArgs::cache_seqlens,
          &PagedAttentionArgs::page_table}) {
      EXPECT_EQ((args.*view).device(), device());
      host.*view = on_host(args.*view);
    }
    WatchedKernels::paged_attention(host);
  }

 private:
  static TensorView on_host(const TensorView& view) {
    return TensorView(view.raw(), view.dtype(), view.shape());
  }
};

TEST(PagedBackendTest, OnAGpuTheMetadataGoesUpOnceABatch) {
  const AttentionSpec spec = small_layer();
  const auto inner = make_reference_kernels();
  PretendedGpu gpu(*inner);
  PagedWorld world(gpu, spec, 4, 64, 4, 64);
  PagedBackend backend("gpu", gpu, world.pool());
  Req& a = world.add(random_projections(20, spec, 1), 20, 0);
  Req& b = world.add(random_projections(33, spec, 2), 33, 30);
  for (int step = 0; step < 3; ++step) {
    const int64_t length = 6 + step;
    a.cached_len = length - 3;
    a.device_len = length;
    world.store(a, 0, a.cached_len);
    gpu.calls.clear();
    EXPECT_LE(
        max_difference(world.run(backend, {&a, &b}, Phase::kPrefill), world.expected({&a, &b})),
        1e-5f);
    EXPECT_EQ(std::ranges::count(gpu.calls, "upload"), 3);
    EXPECT_EQ(std::ranges::count(gpu.calls, "allocate"), step == 0 ? 3 : 0);
    gpu.calls.clear();  // the next layer
    backend.forward(world.out(), world.q(), world.k(), world.v(), spec, world.batch());
    EXPECT_EQ(gpu.calls, (std::vector<std::string>{"store", "store", "attend"}));
  }
}

TEST(ReferenceBackendTest, DoesNotDependOnTheEnginesAttention) {
  const AttentionSpec spec = small_layer();
  const auto inner = make_reference_kernels();
  WatchedKernels kernels(*inner);
  PagedWorld world(kernels, spec, 1, 64, 4, 64);
  const auto backend = make_reference_backend(kernels, world.pool());
  Req& req = world.add(random_projections(9, spec, 1), 9, 0);
  kernels.calls.clear();
  EXPECT_LE(max_difference(world.run(*backend, {&req}, Phase::kPrefill), world.expected({&req})),
            1e-5f);
  EXPECT_EQ(kernels.calls, (std::vector<std::string>{"store", "store"}));
}

}  // namespace
}  // namespace minisgl
