#include "attention/hybrid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attention/paged_world.h"
#include "attention/reference.h"

namespace minisgl {
namespace {

using ::testing::ElementsAre;
using testing::max_difference;
using testing::PagedWorld;
using testing::random_projections;

AttentionSpec small_layer() {
  AttentionSpec spec;
  spec.num_qo_heads = 4;
  spec.num_kv_heads = 2;
  spec.head_dim = 16;
  spec.scale = 0.25f;
  return spec;
}

// Writes down what it is asked to do.
class LoggingBackend : public PagedBackend {
 public:
  LoggingBackend(std::string name, Kernels& kernels, KVPool& pool, std::vector<std::string>& log)
      : PagedBackend(std::move(name), kernels, pool), log_(log) {}
  void prepare_metadata(Batch& batch) override {
    note("prepare");
    PagedBackend::prepare_metadata(batch);
  }
  void forward(TensorView out, TensorView q, TensorView k, TensorView v, const AttentionSpec& spec,
               Batch& batch) override {
    note("forward");
    PagedBackend::forward(out, q, k, v, spec, batch);
  }
  void init_capture_graph(int64_t max_seq_len, std::span<const int> batch_sizes) override {
    note("init");
    PagedBackend::init_capture_graph(max_seq_len, batch_sizes);
  }
  void prepare_for_capture(Batch& batch) override {
    note("capture");
    PagedBackend::prepare_for_capture(batch);
  }
  void prepare_for_replay(Batch& batch) override {
    note("replay");
    PagedBackend::prepare_for_replay(batch);
  }

 private:
  void note(const char* call) { log_.push_back(fmt::format("{} {}", name(), call)); }
  std::vector<std::string>& log_;
};

struct HybridTest : ::testing::Test {
  AttentionSpec spec = small_layer();
  std::unique_ptr<Kernels> kernels = make_reference_kernels();
  PagedWorld world{*kernels, spec, 4, 64, 4, 64};
  std::vector<std::string> log;
  HybridBackend backend{std::make_unique<LoggingBackend>("p", *kernels, world.pool(), log),
                        std::make_unique<LoggingBackend>("d", *kernels, world.pool(), log)};
  Req& req = world.add(random_projections(40, spec, 1), 40, 0);

  void step(int64_t cached, int64_t device, Phase phase) {
    req.cached_len = cached;
    req.device_len = device;
    EXPECT_LE(max_difference(world.run(backend, {&req}, phase), world.expected({&req})), 1e-5f);
  }
};

TEST_F(HybridTest, PrefillGoesToTheFirstAndDecodeToTheSecond) {
  EXPECT_EQ(backend.name(), "p,d");
  step(0, 9, Phase::kPrefill);
  step(9, 10, Phase::kDecode);
  EXPECT_THAT(log, ElementsAre("p prepare", "p forward", "d prepare", "d forward"));
}

TEST_F(HybridTest, GraphHooksGoToDecode) {
  const int sizes[] = {1};
  backend.init_capture_graph(64, sizes);
  req.cached_len = 9;
  req.device_len = 10;
  Batch captured;
  captured.padded_reqs = {&req};
  captured.phase = Phase::kDecode;
  captured.page_table = world.page_table();
  backend.prepare_for_capture(captured);
  Batch& batch = world.pack({&req}, Phase::kDecode);
  backend.prepare_metadata(batch);
  backend.prepare_for_replay(batch);
  EXPECT_THAT(log, ElementsAre("d init", "d capture", "d prepare", "d replay"));
}

TEST_F(HybridTest, MetadataOfBothKindsIsReusedWhenPhasesAlternate) {
  step(0, 4, Phase::kPrefill);
  const AttentionMetadata* prefill = world.batch().attn_metadata.get();
  step(4, 5, Phase::kDecode);
  const AttentionMetadata* decode = world.batch().attn_metadata.get();
  EXPECT_NE(decode, prefill);
  for (int64_t n = 5; n < 20; n += 3) {
    step(n, n + 2, Phase::kPrefill);
    EXPECT_EQ(world.batch().attn_metadata.get(), prefill);
    step(n + 2, n + 3, Phase::kDecode);
    EXPECT_EQ(world.batch().attn_metadata.get(), decode);
  }
}

TEST_F(HybridTest, BatchesInFlightHaveTheirOwnMetadata) {
  req.device_len = 4;
  Batch other;
  other.padded_reqs = {&req};
  other.page_table = world.page_table();
  step(0, 4, Phase::kPrefill);
  step(4, 5, Phase::kDecode);  // leaves prefill metadata behind
  other.phase = Phase::kPrefill;
  backend.prepare_metadata(other);
  EXPECT_NE(other.attn_metadata.get(), world.batch().attn_metadata.get());
  step(5, 8, Phase::kPrefill);
  EXPECT_NE(other.attn_metadata.get(), world.batch().attn_metadata.get());
}

}  // namespace
}  // namespace minisgl
