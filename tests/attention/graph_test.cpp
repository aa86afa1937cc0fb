// The hooks of a captured decode graph, with a graph that is emulated: the forward pass of the
// static batch is simply run again, so that whatever is not copied before a replay is stale.
#include <gtest/gtest.h>

#include <cstring>

#include "attention/paged_world.h"
#include "attention/reference.h"
#include "attention/test_kernels.h"
#include "utils/error.h"

namespace minisgl {
namespace {

using testing::all_kernels;
using testing::max_difference;
using testing::NamedKernels;
using testing::PagedWorld;
using testing::random_projections;

constexpr int64_t kMaxSeqLen = 64;

AttentionSpec small_layer() {
  AttentionSpec spec;
  spec.num_qo_heads = 4;
  spec.num_kv_heads = 2;
  spec.head_dim = 16;
  spec.scale = 0.25f;
  return spec;
}

// A world whose last row is the dummy request, and captured graphs of its one layer.
class EmulatedGraphs {
 public:
  EmulatedGraphs(Kernels& kernels, std::vector<int> sizes)
      : world(kernels, small_layer(), 4, 64, 7, kMaxSeqLen),
        backend("tested", kernels, world.pool()) {
    dummy.uid = -1;
    dummy.table_idx = 7;
    dummy.device_len = 1;
    const auto first = static_cast<int32_t>(world.pool().dummy_location());
    world.page_table().select(7).data<int32_t>()[0] = first;
    backend.init_capture_graph(kMaxSeqLen, sizes);
    for (const int size : sizes) capture(size);
  }

  // The real rows' outputs of one decode step, padded to the next captured size.
  // `skip` names the input that is not refreshed, to see that it is missed.
  std::vector<float> replay(std::vector<Req*> reqs, const std::string& skip = "") {
    const size_t num_real = reqs.size();
    Captured& graph = *std::ranges::find_if(
        captured_, [&](const Captured& c) { return c.batch->padded_size() >= num_real; });
    Batch& batch = world.pack(reqs, Phase::kDecode);
    while (batch.padded_reqs.size() < graph.batch->padded_size()) {
      batch.padded_reqs.push_back(&dummy);
    }
    backend.prepare_metadata(batch);
    if (skip != "k") refresh(graph.k, world.k());
    if (skip != "q") refresh(graph.q, world.q());
    refresh(graph.v, world.v());
    if (skip != "out_loc") {
      std::ranges::fill(graph.out_loc, static_cast<int32_t>(world.pool().dummy_location()));
      std::ranges::copy(batch.out_loc.values<int32_t>(), graph.out_loc.begin());
    }
    if (skip != "metadata") backend.prepare_for_replay(batch);
    run(graph);
    graph.out.resize(graph.q.size());
    return {graph.out.begin(), graph.out.begin() + world.q().numel()};
  }

  PagedWorld world;
  PagedBackend backend;
  Req dummy;

 private:
  struct Captured {
    std::unique_ptr<Batch> batch = std::make_unique<Batch>();
    std::vector<float> q, k, v, out;
    std::vector<int32_t> out_loc;
  };

  void capture(int size) {
    Captured& graph = captured_.emplace_back();
    const AttentionSpec& spec = world.spec();
    graph.q.resize(static_cast<size_t>(size * spec.num_qo_heads * spec.head_dim));
    graph.k.resize(static_cast<size_t>(size * spec.num_kv_heads * spec.head_dim));
    graph.v = graph.k;
    graph.out = graph.q;
    graph.out_loc.assign(static_cast<size_t>(size),
                         static_cast<int32_t>(world.pool().dummy_location()));
    Batch& batch = *graph.batch;
    batch.phase = Phase::kDecode;
    batch.padded_reqs.assign(static_cast<size_t>(size), &dummy);
    batch.page_table = world.page_table();
    batch.out_loc = TensorView::of(std::span(graph.out_loc));
    backend.prepare_for_capture(batch);
    run(graph);
  }
  void run(Captured& graph) {
    const AttentionSpec& spec = world.spec();
    const auto view = [&](std::vector<float>& x, int64_t heads) {
      return TensorView(x.data(), DType::kFloat32,
                        {static_cast<int64_t>(graph.out_loc.size()), heads, spec.head_dim});
    };
    backend.forward(view(graph.out, spec.num_qo_heads), view(graph.q, spec.num_qo_heads),
                    view(graph.k, spec.num_kv_heads), view(graph.v, spec.num_kv_heads), spec,
                    *graph.batch);
  }
  static void refresh(std::vector<float>& to, TensorView from) {
    std::memcpy(to.data(), from.raw(), static_cast<size_t>(from.bytes()));
  }

  std::vector<Captured> captured_;
};

TEST(AttentionGraphTest, ReplaysOfChangingBatchesEqualCompleteAttention) {
  for (const NamedKernels& tested : all_kernels()) {
    EmulatedGraphs graphs(*tested.kernels, {4, 2, 1});
    std::vector<Req*> reqs;
    for (uint32_t seed = 1; seed <= 4; ++seed) {
      reqs.push_back(
          &graphs.world.add(random_projections(40, small_layer(), seed), 40, 10 + 3 * seed));
    }
    // Long and short, more and fewer, so that columns and rows of earlier replays are left behind.
    for (int64_t step = 0; step < 12; ++step) {
      std::vector<Req*> batch(reqs.begin(), reqs.begin() + 1 + step % 4);
      if (step % 3 == 0) std::ranges::reverse(batch);
      for (Req* req : batch) req->device_len = req->cached_len + 1;
      EXPECT_LE(max_difference(graphs.replay(batch), graphs.world.expected(batch)), 1e-5f)
          << tested.name << ", step " << step;
      for (Req* req : batch) req->complete_one();
    }
  }
}

TEST(AttentionGraphTest, StaleColumnsOfALongerBatchAreHarmless) {
  const auto kernels = make_reference_kernels();
  EmulatedGraphs graphs(*kernels, {1});
  Req& longer = graphs.world.add(random_projections(60, small_layer(), 1), 60, 59);
  Req& shorter = graphs.world.add(random_projections(5, small_layer(), 2), 5, 4);
  graphs.replay({&longer});
  EXPECT_LE(max_difference(graphs.replay({&shorter}), graphs.world.expected({&shorter})), 1e-5f);
}

class PoisonTest : public ::testing::TestWithParam<std::string> {};

TEST_P(PoisonTest, AnInputThatIsNotCopiedBeforeAReplayIsNoticed) {
  const auto kernels = make_reference_kernels();
  EmulatedGraphs graphs(*kernels, {2});
  Req& a = graphs.world.add(random_projections(30, small_layer(), 1), 30, 20);
  Req& b = graphs.world.add(random_projections(30, small_layer(), 2), 30, 9);
  const auto decode = [&](const std::string& skip) {
    for (Req* req : {&a, &b}) req->device_len = req->cached_len + 1;
    const float error =
        max_difference(graphs.replay({&a, &b}, skip), graphs.world.expected({&a, &b}));
    for (Req* req : {&a, &b}) req->complete_one();
    return error;
  };
  EXPECT_LE(decode(""), 1e-5f);
  EXPECT_GT(decode(GetParam()), 1e-3f);
}
INSTANTIATE_TEST_SUITE_P(Inputs, PoisonTest, ::testing::Values("q", "k", "out_loc", "metadata"));

TEST(AttentionGraphTest, PaddingWritesToTheDummyPageAlone) {
  const auto kernels = make_reference_kernels();
  EmulatedGraphs graphs(*kernels, {4});
  Req& req = graphs.world.add(random_projections(5, small_layer(), 1), 5, 4);
  const TensorView k = graphs.world.pool().k(0);
  const std::vector<float> before(k.values<float>().begin(), k.values<float>().end());
  graphs.replay({&req});
  const int64_t row = k.dim(1) * k.dim(2);
  const int32_t written = graphs.world.row(req)[4];
  for (int64_t loc = 0; loc < graphs.world.pool().dummy_location(); ++loc) {
    const bool same = std::equal(before.begin() + loc * row, before.begin() + (loc + 1) * row,
                                 k.values<float>().begin() + loc * row);
    EXPECT_EQ(same, loc != written) << loc;
  }
}

TEST(AttentionGraphTest, RefusesWhatWasNotCaptured) {
  const auto kernels = make_reference_kernels();
  EmulatedGraphs graphs(*kernels, {2});
  Req& req = graphs.world.add(random_projections(9, small_layer(), 1), 9, 8);
  Batch& batch = graphs.world.pack({&req}, Phase::kDecode);
  graphs.backend.prepare_metadata(batch);  // of one request
  EXPECT_THROW(graphs.backend.prepare_for_replay(batch), Error);
  batch.padded_reqs = {&req, &graphs.dummy};
  req.cached_len = 4;  // five rows: no decode
  graphs.backend.prepare_metadata(batch);
  EXPECT_THROW(graphs.backend.prepare_for_replay(batch), Error);
}

}  // namespace
}  // namespace minisgl
