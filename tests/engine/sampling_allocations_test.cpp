// A steady decode step allocates nothing, whatever its requests ask of the sampler.
#include <gtest/gtest.h>

#include "attention/counted_allocations.h"
#include "engine/golden_model.h"

namespace minisgl::testing {
namespace {

TEST(SamplingAllocations, ADecodeStepAllocatesNothingWhateverItsRequestsAskFor) {
  EngineConfig config;
  config.model_path = open_golden("models/qwen3").model();
  config.dtype = "float32";
  config.threads = 2;
  config.max_running_requests = 8;
  config.num_pages = 1024;
  config.max_seq_len = 128;
  config.page_size = 16;
  Engine engine(config);
  for (const bool overlap : {false, true}) {
    Scheduler scheduler(engine, {.overlap = overlap});
    std::vector<Reply> replies;
    SamplingParams params{.temperature = 0.7,
                          .top_k = 40,
                          .top_p = 0.9,
                          .min_p = 0.01,
                          .repetition_penalty = 1.2,
                          .frequency_penalty = 0.5,
                          .presence_penalty = 0.5,
                          .logit_bias = {{7, 1}},
                          .seed = 3,
                          .min_tokens = 10,
                          .logprobs = 0};
    for (int64_t uid = 0; uid < 2; ++uid) {
      GenerateRequest request;
      request.uid = uid;
      request.input_ids = {5, 9, 12, static_cast<int32_t>(uid)};
      if (uid == 0) request.sampling_params = params;
      request.sampling_params.max_tokens = 24;
      scheduler.submit(std::move(request), replies);
    }
    for (int i = 0; i < 6; ++i) scheduler.step(replies);
    replies.clear();
    replies.reserve(64);
    const int64_t before = num_allocations();
    for (int i = 0; i < 10; ++i) scheduler.step(replies);
    EXPECT_EQ(num_allocations() - before, 0) << "overlap " << overlap;
    EXPECT_EQ(replies.size(), 20u);
    while (scheduler.step(replies)) {
    }
  }
}

}  // namespace
}  // namespace minisgl::testing
