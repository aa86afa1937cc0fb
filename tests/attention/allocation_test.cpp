// What a step prepares costs no heap allocation once sizes have been seen.
#include <gtest/gtest.h>

#include "attention/counted_allocations.h"
#include "attention/hybrid.h"
#include "attention/paged_world.h"
#include "attention/reference.h"

namespace minisgl {
namespace {

TEST(AttentionAllocationTest, PreparingASteadyMixtureOfStepsAllocatesNothing) {
  AttentionSpec spec;
  spec.num_qo_heads = spec.num_kv_heads = 1;
  spec.head_dim = 4;
  const auto kernels = make_reference_kernels();
  testing::PagedWorld world(*kernels, spec, 4, 256, 4, 256);
  HybridBackend backend(std::make_unique<PagedBackend>("p", *kernels, world.pool()),
                        std::make_unique<PagedBackend>("d", *kernels, world.pool()));
  const int sizes[] = {4};
  backend.init_capture_graph(256, sizes);

  std::vector<Req*> reqs;
  for (uint32_t seed = 0; seed < 4; ++seed) {
    reqs.push_back(&world.add(testing::random_projections(200, spec, seed), 200, 0));
  }
  Batch captured;
  captured.phase = Phase::kDecode;
  captured.padded_reqs = reqs;
  captured.page_table = world.page_table();
  for (Req* req : reqs) req->device_len = 1;
  backend.prepare_for_capture(captured);

  // Longer every step, prefill and decode in turn.
  Batch& batch = world.pack(reqs, Phase::kPrefill);
  const auto step = [&](int64_t length) {
    for (Req* req : reqs) {
      req->cached_len = length - 3;
      req->device_len = length;
    }
    batch.phase = Phase::kPrefill;
    backend.prepare_metadata(batch);
    for (Req* req : reqs) req->cached_len = length - 1;
    batch.phase = Phase::kDecode;
    backend.prepare_metadata(batch);
    backend.prepare_for_replay(batch);
  };
  step(10);
  step(11);
  const int64_t before = testing::num_allocations();
  for (int64_t length = 12; length <= 200; ++length) step(length);
  EXPECT_EQ(testing::num_allocations() - before, 0);
}

}  // namespace
}  // namespace minisgl
