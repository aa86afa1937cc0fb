// --max-token-gap-ms: a long prompt is cut so that running streams get their next token in time.
#include <gtest/gtest.h>

#include <numeric>

#include "engine/null_runner.h"
#include "scheduler/scheduler.h"
#include "scheduler/step_cost.h"

namespace minisgl::testing {
namespace {

constexpr StepRunner::Limits kLimits = {.num_pages = 20'000,
                                        .page_size = 1,
                                        .max_seq_len = 10'000,
                                        .max_running_requests = 4,
                                        .max_prefill_tokens = 8192,
                                        .vocab_size = 20'000};

// Computes nothing and says that a step took `fixed_ms` + `token_ms` a token.
class ClockedRunner final : public StepRunner {
 public:
  Limits limits() const override { return runner_.limits(); }
  TensorView page_table() const override { return runner_.page_table(); }
  TensorView token_pool() const override { return runner_.token_pool(); }
  void prepare(Step& step) override { runner_.prepare(step); }
  void launch(Step& step) override {
    last_tokens = static_cast<int64_t>(step.input_ids.size());
    last_ms = fixed_ms + token_ms * static_cast<double>(last_tokens);
    using Duration = Clock::duration;
    step.began = now_;
    now_ +=
        std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>(last_ms));
    step.ended = now_;
  }
  void wait(Step&) override {}

  double fixed_ms = 2.0, token_ms = 0.1;
  int64_t last_tokens = 0;
  double last_ms = 0.0;

 private:
  NullRunner runner_{kLimits};
  Clock::time_point now_ = Clock::now();
};

GenerateRequest request_of(int64_t uid, int32_t first, size_t length, int64_t max_tokens) {
  GenerateRequest request;
  request.uid = uid;
  request.input_ids.resize(length);
  std::iota(request.input_ids.begin(), request.input_ids.end(), first);
  request.sampling_params.max_tokens = max_tokens;
  return request;
}

SchedulerConfig gap_of(int64_t milliseconds) {
  SchedulerConfig config;
  config.max_token_gap_ms = milliseconds;
  return config;
}

struct World {
  explicit World(int64_t gap_ms) : scheduler(runner, gap_of(gap_ms)) {}
  void step() {
    scheduler.step(replies);
    replies.clear();
  }
  // A stream that goes on, then a long prompt beside it.
  void start() {
    scheduler.submit(request_of(0, 0, 8, 5000), replies);
    for (int i = 0; i < 5; ++i) step();
    scheduler.submit(request_of(1, 5000, 8000, 4), replies);
  }

  ClockedRunner runner;
  Scheduler scheduler;
  std::vector<Reply> replies;
};

TEST(TokenGap, WithoutABoundTheWholePromptIsOneStep) {
  World run(0);
  run.start();
  run.step();
  EXPECT_EQ(run.runner.last_tokens, 8001);
}

TEST(TokenGap, BoundsEveryStepThatAStreamWaitsFor) {
  World run(20);
  run.start();
  int64_t largest = 0;
  for (int i = 0; i < 60; ++i) {
    run.step();
    EXPECT_LE(run.runner.last_ms, 20.0);
    largest = std::max(largest, run.runner.last_tokens);
  }
  // (20 - 2) / 0.1 tokens would just do: most of that is used.
  EXPECT_GT(largest, 140);
}

TEST(TokenGap, FollowsAMachineThatBecomesSlower) {
  World run(20);
  run.start();
  for (int i = 0; i < 10; ++i) run.step();
  run.runner.token_ms = 0.3;
  for (int i = 0; i < 40; ++i) run.step();
  for (int i = 0; i < 10; ++i) {
    run.step();
    ASSERT_GT(run.runner.last_tokens, 1) << "the prompt ended too early for this test";
    EXPECT_LE(run.runner.last_ms, 20.0);
  }
}

TEST(TokenGap, APromptAloneIsNotCut) {
  World run(20);
  run.scheduler.submit(request_of(0, 0, 8000, 4), run.replies);
  run.step();
  EXPECT_EQ(run.runner.last_tokens, 8000);
}

TEST(TokenGap, RefusesModesThatCannotKeepIt) {
  ClockedRunner runner;
  SchedulerConfig config = gap_of(20);
  config.schedule = SchedulePolicy::kPrefillFirst;
  EXPECT_THROW(Scheduler(runner, config), Error);
  EXPECT_THROW(Scheduler(runner, gap_of(-1)), Error);
}

TEST(StepCost, FindsTheLineAndFallsBackToAProportion) {
  StepCost line;
  EXPECT_GE(line.tokens_within(10.0), 1);
  for (int64_t tokens = 1; tokens <= 100; ++tokens) {
    line.observe(tokens, 1.0 + 0.5 * static_cast<double>(tokens));
  }
  EXPECT_EQ(line.tokens_within(10.0 / 0.9 + 1e-6), 18);
  StepCost same;
  for (int i = 0; i < 10; ++i) same.observe(10, 5.0);
  EXPECT_EQ(same.tokens_within(10.0 / 0.9 + 1e-6), 20);
  EXPECT_EQ(same.tokens_within(0.01), 1);
}

}  // namespace
}  // namespace minisgl::testing
