// A decode step of a real model takes no memory from the heap, in any thread.
#include <gtest/gtest.h>

#include "attention/counted_allocations.h"
#include "engine/golden_model.h"

namespace minisgl::testing {
namespace {

class DecodeAllocations : public ::testing::TestWithParam<EngineConfig> {};

TEST_P(DecodeAllocations, TheSteadyStateTakesNone) {
  EngineConfig config = GetParam();
  config.model_path = open_golden("models/qwen3").model();
  config.max_running_requests = 4;
  config.num_pages = 512;
  Engine engine(config);
  Scheduler scheduler(engine, {});
  std::vector<Reply> replies;
  for (int32_t uid = 0; uid < 4; ++uid) {
    GenerateRequest request;
    request.uid = uid;
    request.input_ids = {uid + 1, uid + 2, uid + 3};
    request.sampling_params.max_tokens = 100;
    if (uid == 3) request.sampling_params = {.temperature = 1.0, .top_p = 0.9, .max_tokens = 100};
    scheduler.submit(std::move(request), replies);
  }
  for (int step = 0; step < 20; ++step) {
    scheduler.step(replies);
    replies.clear();
  }
  const int64_t before = num_allocations();
  size_t num_replies = 0;
  for (int step = 0; step < 40; ++step) {
    scheduler.step(replies);
    num_replies += replies.size();
    replies.clear();
  }
  EXPECT_EQ(num_allocations(), before);
  EXPECT_EQ(num_replies, 4u * 40u);
}

INSTANTIATE_TEST_SUITE_P(Modes, DecodeAllocations,
                         ::testing::Values(EngineConfig{.dtype = "float32", .threads = 2},
                                           EngineConfig{.dtype = "bfloat16", .threads = 1},
                                           EngineConfig{.threads = 1, .graph_max_bs = 4}));

}  // namespace
}  // namespace minisgl::testing
