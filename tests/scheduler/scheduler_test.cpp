#include "scheduler/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "scheduler/mock_runner.h"

namespace minisgl::testing {
namespace {

using ::testing::HasSubstr;

constexpr StepRunner::Limits kLimits = {.num_pages = 4096,
                                        .page_size = 1,
                                        .max_seq_len = 1024,
                                        .max_running_requests = 32,
                                        .max_prefill_tokens = 512,
                                        .vocab_size = 1000};

std::vector<int32_t> tokens_from(int32_t first, size_t n) {
  std::vector<int32_t> ids(n);
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

// A scheduler over a mock, with what each request has received.
struct World {
  explicit World(StepRunner::Limits limits = kLimits, SchedulerConfig config = {})
      : runner(limits, 1), scheduler(runner, config) {}

  void submit(int64_t uid, std::vector<int32_t> prompt, int64_t max_tokens,
              std::vector<int32_t> eos = {}) {
    GenerateRequest request;
    request.uid = uid;
    request.input_ids = std::move(prompt);
    request.sampling_params.max_tokens = max_tokens;
    request.eos_token_ids = std::move(eos);
    scheduler.submit(std::move(request), replies);
    sort_replies();
  }
  bool step() {
    const bool more = scheduler.step(replies);
    sort_replies();
    scheduler.check_integrity();
    return more;
  }
  void run() {
    while (step()) {
    }
  }
  void sort_replies() {
    for (Reply& reply : replies) of[reply.uid].push_back(std::move(reply));
    replies.clear();
  }
  std::vector<int32_t> tokens(int64_t uid) {
    std::vector<int32_t> ids;
    for (const Reply& reply : of[uid]) {
      if (reply.token >= 0) ids.push_back(reply.token);
    }
    return ids;
  }
  int64_t num_finished(int64_t uid) {
    return std::count_if(of[uid].begin(), of[uid].end(), [](const Reply& r) { return r.finished; });
  }

  MockRunner runner;
  Scheduler scheduler;
  std::vector<Reply> replies;
  std::map<int64_t, std::vector<Reply>> of;
};

class Overlap : public ::testing::TestWithParam<bool> {
 protected:
  SchedulerConfig config() const { return {.overlap = GetParam()}; }
};
INSTANTIATE_TEST_SUITE_P(OnAndOff, Overlap, ::testing::Bool());

// Upstream's fault 1: finished was told one token early under overlap.
TEST_P(Overlap, ExactlyMaxTokensRepliesAndOnlyTheLastIsFinished) {
  for (const int64_t n : {1, 2, 5}) {
    World world(kLimits, config());
    world.submit(0, tokens_from(0, 6), n);
    world.run();
    ASSERT_EQ(world.of[0].size(), static_cast<size_t>(n));
    for (size_t i = 0; i < world.of[0].size(); ++i) {
      EXPECT_EQ(world.of[0][i].finished, i + 1 == world.of[0].size());
    }
    EXPECT_EQ(world.of[0].back().reason, FinishReason::kLength);
  }
}

// Upstream's fault 2: a message for a request after its EOS.
TEST_P(Overlap, NothingComesAfterTheEndOfText) {
  const auto prompt = tokens_from(0, 6);
  const auto alone = MockRunner::tokens_alone(prompt, 20, {}, kLimits.vocab_size);
  World world(kLimits, config());
  world.submit(0, prompt, 20, {alone[3]});
  world.run();
  EXPECT_EQ(world.tokens(0), std::vector<int32_t>(alone.begin(), alone.begin() + 4));
  EXPECT_TRUE(world.of[0].back().finished);
  EXPECT_FALSE(world.of[0].back().token_is_text);
  EXPECT_EQ(world.of[0].back().reason, FinishReason::kStop);
}

// Upstream's fault 3: a row was reused while a launched step still wrote to it. One row, and a
// request that takes it over the moment the other one ends early.
TEST_P(Overlap, ARowIsNotReusedWhileInFlight) {
  StepRunner::Limits limits = kLimits;
  limits.max_running_requests = 1;
  const auto prompt = tokens_from(0, 6);
  const auto alone = MockRunner::tokens_alone(prompt, 20, {}, limits.vocab_size);
  for (uint64_t repeat = 0; repeat < 8; ++repeat) {
    World world(limits, config());
    world.submit(0, prompt, 20, {alone[2]});
    world.submit(1, tokens_from(500, 9), 5);
    world.run();
    EXPECT_EQ(world.tokens(1),
              MockRunner::tokens_alone(tokens_from(500, 9), 5, {}, limits.vocab_size));
  }
}

// Upstream's fault 4: pages freed twice when a request is aborted in mid-prefill.
TEST_P(Overlap, AnAbortInMidPrefillFreesEveryPageOnce) {
  StepRunner::Limits limits = kLimits;
  limits.max_prefill_tokens = 16;
  World world(limits, config());
  world.submit(0, tokens_from(0, 61), 5);
  world.step();
  world.step();
  world.scheduler.abort(0, world.replies);
  world.sort_replies();
  EXPECT_EQ(world.num_finished(0), 1);
  EXPECT_EQ(world.of[0].back().reason, FinishReason::kAbort);
  world.run();
  world.scheduler.flush_cache();
  EXPECT_EQ(world.scheduler.cache().num_free_pages(), limits.num_pages);
  EXPECT_EQ(world.num_finished(0), 1);
}

// Upstream's fault 6: a row that went on naming its freed duplicates.
TEST_P(Overlap, EqualPromptsSurviveReuseOfFreedPages) {
  StepRunner::Limits limits = kLimits;
  limits.num_pages = 40;
  limits.max_seq_len = 40;
  World world(limits, config());
  const auto prompt = tokens_from(0, 12);
  world.submit(0, prompt, 8);
  world.submit(1, prompt, 20);
  for (int64_t uid = 2; uid < 12; ++uid) {
    world.submit(uid, tokens_from(static_cast<int32_t>(100 + 20 * uid), 7), 4);
  }
  world.run();
  const auto alone = MockRunner::tokens_alone(prompt, 20, {}, limits.vocab_size);
  EXPECT_EQ(world.tokens(1), alone);
  EXPECT_EQ(world.tokens(0), std::vector<int32_t>(alone.begin(), alone.begin() + 8));
}

// 16 requests that share 400 tokens compute them once, also when they arrive together.
TEST_P(Overlap, ASharedPrefixIsComputedOnce) {
  for (const SchedulePolicy schedule : {SchedulePolicy::kMixed, SchedulePolicy::kPrefillFirst}) {
    SchedulerConfig with_schedule = config();
    with_schedule.schedule = schedule;
    World world(kLimits, with_schedule);
    for (int32_t uid = 0; uid < 16; ++uid) {
      std::vector<int32_t> prompt = tokens_from(0, 400);
      for (int32_t i = 0; i < 16; ++i) prompt.push_back(500 + 16 * uid + i);
      world.submit(uid, prompt, 4);
    }
    world.run();
    EXPECT_EQ(world.scheduler.computed_prompt_tokens(), 656);
    for (int64_t uid = 1; uid < 16; ++uid) {
      EXPECT_EQ(world.of[uid].back().cached_tokens, 400);
    }
  }
}

// The last token has no K and V, with overlap or without.
TEST_P(Overlap, TheNextTurnFindsAllButTheLastToken) {
  World world(kLimits, config());
  world.submit(0, {0, 1, 2, 3}, 2);
  world.run();
  std::vector<int32_t> next = {0, 1, 2, 3};
  for (const int32_t id : world.tokens(0)) next.push_back(id);
  next.push_back(9);
  next.push_back(10);
  world.submit(1, next, 2);
  world.run();
  EXPECT_EQ(world.of[1].back().cached_tokens, 5);
}

// What an abort leaves behind is used by the conversation's next message.
TEST_P(Overlap, AnAbortKeepsWhatWasComputed) {
  World world(kLimits, config());
  world.submit(0, tokens_from(0, 50), 100);
  for (int i = 0; i < 10; ++i) world.step();
  world.scheduler.abort(0, world.replies);
  world.sort_replies();
  world.run();
  world.submit(1, tokens_from(0, 60), 2);
  world.run();
  EXPECT_EQ(world.of[1].back().cached_tokens, 50);
}

TEST_P(Overlap, TenantsOfDifferentSaltsShareNothing) {
  World world(kLimits, config());
  for (uint64_t salt = 0; salt < 2; ++salt) {
    GenerateRequest request;
    request.uid = static_cast<int64_t>(salt);
    request.input_ids = tokens_from(0, 50);
    request.sampling_params.max_tokens = 2;
    request.cache_salt = salt;
    world.scheduler.submit(std::move(request), world.replies);
    world.run();
  }
  EXPECT_EQ(world.of[1].back().cached_tokens, 0);
}

TEST(Scheduler, AStepThatFailsEndsItsRequestsAndNoOthers) {
  World world;
  world.submit(0, tokens_from(0, 6), 5);
  world.runner.fail_next_step();
  world.run();
  EXPECT_EQ(world.of[0].back().reason, FinishReason::kError);
  EXPECT_THAT(world.of[0].back().error, HasSubstr("the step failed"));
  world.submit(1, tokens_from(0, 6), 5);
  world.run();
  EXPECT_EQ(world.tokens(1), MockRunner::tokens_alone(tokens_from(0, 6), 5, {}, 1000));
}

struct RefusalCase {
  const char* name;
  std::vector<int32_t> prompt;
  SamplingParams params;
  const char* message;
};

class Refusal : public ::testing::TestWithParam<RefusalCase> {};

TEST_P(Refusal, IsAnsweredAtOnceWithTheNumbers) {
  World world;
  GenerateRequest request;
  request.input_ids = GetParam().prompt;
  request.sampling_params = GetParam().params;
  world.scheduler.submit(std::move(request), world.replies);
  world.sort_replies();
  ASSERT_EQ(world.of[0].size(), 1u);
  const Reply& reply = world.of[0].front();
  EXPECT_TRUE(reply.finished);
  EXPECT_EQ(reply.reason, FinishReason::kError);
  EXPECT_EQ(reply.error_kind, ErrorKind::kInvalidArgument);
  EXPECT_THAT(reply.error, HasSubstr(GetParam().message));
  EXPECT_TRUE(world.scheduler.is_idle());
}

INSTANTIATE_TEST_SUITE_P(
    Requests, Refusal,
    ::testing::ValuesIn(std::vector<RefusalCase>{
        {"EmptyPrompt", {}, {}, "the prompt is empty"},
        {"PromptBeyondContext", std::vector<int32_t>(1024, 1), {.max_tokens = 5}, "1024 tokens"},
        {"NegativeId", {1, -5}, {}, "-5"},
        {"IdBeyondVocabulary", {1, 1000}, {}, "1000"},
        {"NoTokens", {1}, {.max_tokens = 0}, "max_tokens"},
        {"NegativeTokens", {1}, {.max_tokens = -3}, "-3"},
        {"NegativeTemperature", {1}, {.temperature = -1.0}, "temperature"},
        {"TopPZero", {1}, {.top_p = 0.0}, "top_p"},
        {"TopPAboveOne", {1}, {.top_p = 1.5}, "top_p"},
        {"MinPAboveOne", {1}, {.min_p = 1.5}, "min_p"},
        {"StopIdBeyondVocabulary", {1}, {.stop_token_ids = {5000}}, "5000"},
    }),
    [](const auto& info) { return info.param.name; });

// A prompt whose log-probabilities are wanted takes no more rows of logits than there is room for,
// and lets a second one have the rest.
TEST(Scheduler, StepsTakeNoMoreScoredTokensThanTheRunnerHasRoomFor) {
  StepRunner::Limits limits = kLimits;
  limits.max_scored_tokens = 10;
  World world(limits, {.overlap = false});
  for (int64_t uid = 0; uid < 2; ++uid) {
    GenerateRequest request;
    request.uid = uid;
    request.input_ids = tokens_from(static_cast<int32_t>(100 * uid), 25);
    request.sampling_params.max_tokens = 1;
    request.sampling_params.prompt_logprobs = 0;
    world.scheduler.submit(std::move(request), world.replies);
  }
  world.run();
  EXPECT_EQ(world.runner.num_steps(), 5);
  EXPECT_LE(world.runner.largest_step(), 10);
  for (int64_t uid = 0; uid < 2; ++uid) {
    ASSERT_EQ(world.of[uid].size(), 1u);
    EXPECT_EQ(world.of[uid][0].prompt_logprobs.size(), 24u);
  }
}

TEST(Scheduler, APromptThatCanNeverFitIsRefusedAndOneThatFitsLaterWaits) {
  StepRunner::Limits limits = kLimits;
  limits.num_pages = 64;
  World world(limits);
  world.submit(0, tokens_from(0, 64), 1);
  EXPECT_THAT(world.of[0].back().error, HasSubstr("64"));
  world.submit(1, tokens_from(0, 40), 20);
  world.submit(2, tokens_from(100, 40), 20);
  world.step();
  EXPECT_EQ(world.scheduler.num_waiting(), 1);
  world.run();
  EXPECT_EQ(world.tokens(2).size(), 20u);
}

TEST(Scheduler, PagesAreChargedNotTokens) {
  StepRunner::Limits limits = kLimits;
  limits.page_size = 16;
  limits.num_pages = 4;
  for (const AdmissionPolicy admission :
       {AdmissionPolicy::kReserve, AdmissionPolicy::kOptimistic}) {
    World world(limits, {.admission = admission});
    for (int32_t uid = 0; uid < 3; ++uid) world.submit(uid, tokens_from(100 * uid, 9), 9);
    world.run();
    for (int64_t uid = 0; uid < 3; ++uid) EXPECT_EQ(world.tokens(uid).size(), 9u);
  }
}

TEST(Scheduler, HigherPriorityGoesFirstAndWaitingRaisesIt) {
  StepRunner::Limits limits = kLimits;
  limits.max_running_requests = 1;
  World world(limits, {.overlap = false, .aging_steps = 4});
  const auto submit = [&](int64_t uid, int priority) {
    GenerateRequest request;
    request.uid = uid;
    request.input_ids = tokens_from(static_cast<int32_t>(50 * uid), 4);
    request.sampling_params.max_tokens = 8;
    request.priority = priority;
    world.scheduler.submit(std::move(request), world.replies);
  };
  submit(0, 0);
  world.step();
  submit(1, 0);
  submit(2, 1);
  std::vector<int64_t> order;
  for (int i = 0; i < 40; ++i) {
    world.scheduler.step(world.replies);
    for (const Reply& reply : world.replies) {
      if (reply.finished) order.push_back(reply.uid);
    }
    world.replies.clear();
    if (i == 10) submit(3, 1);  // request 1 has waited long enough by then
  }
  EXPECT_EQ(order, (std::vector<int64_t>{0, 2, 1, 3}));
}

TEST(Scheduler, ADeadlineEndsARequestThatWaitsOrRuns) {
  StepRunner::Limits limits = kLimits;
  limits.max_running_requests = 1;
  World world(limits);
  for (int64_t uid = 0; uid < 2; ++uid) {
    GenerateRequest request;
    request.uid = uid;
    request.input_ids = tokens_from(0, 4);
    request.sampling_params.max_tokens = 500;
    request.deadline = Clock::now() - std::chrono::seconds(1);
    world.scheduler.submit(std::move(request), world.replies);
  }
  world.run();
  for (int64_t uid = 0; uid < 2; ++uid) {
    EXPECT_EQ(world.num_finished(uid), 1);
    EXPECT_EQ(world.of[uid].back().reason, FinishReason::kTimeout);
  }
}

// A long prompt does not stall running streams: they get a token every step.
TEST(Scheduler, MixedStepsKeepRunningStreamsGoing) {
  StepRunner::Limits limits = kLimits;
  limits.max_prefill_tokens = 16;
  World world(limits, {.schedule = SchedulePolicy::kMixed, .overlap = false});
  world.submit(0, tokens_from(0, 4), 100);
  world.step();
  world.submit(1, tokens_from(100, 500), 2);
  for (int i = 0; i < 20; ++i) {
    const size_t before = world.tokens(0).size();
    world.step();
    EXPECT_EQ(world.tokens(0).size(), before + 1);
  }
  EXPECT_LE(world.runner.largest_step(), 16);
  EXPECT_GT(world.runner.num_mixed_steps(), 10);
}

}  // namespace
}  // namespace minisgl::testing
