// What the snapshot and the replies say about requests: why they wait, what ended them, where
// their prefix stopped matching.
#include "scheduler/snapshot.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "engine/null_runner.h"
#include "scheduler/scheduler.h"

namespace minisgl::testing {
namespace {

constexpr StepRunner::Limits kLimits = {.num_pages = 64,
                                        .page_size = 4,
                                        .max_seq_len = 128,
                                        .max_running_requests = 4,
                                        .max_prefill_tokens = 32,
                                        .vocab_size = 1000};

GenerateRequest request_of(int64_t uid, int32_t first, size_t prompt_len, int64_t max_tokens) {
  GenerateRequest request;
  request.uid = uid;
  request.input_ids.resize(prompt_len);
  std::iota(request.input_ids.begin(), request.input_ids.end(), first);
  request.sampling_params.max_tokens = max_tokens;
  return request;
}

struct World {
  explicit World(StepRunner::Limits limits = kLimits)
      : runner(limits), scheduler(runner, config()) {}
  static SchedulerConfig config() {
    SchedulerConfig config;
    config.overlap = false;
    return config;
  }
  void submit(GenerateRequest request) { scheduler.submit(std::move(request), replies); }
  bool step() {
    const bool more = scheduler.step(replies);
    for (Reply& reply : replies) {
      if (reply.finished) last[reply.uid] = std::move(reply);
    }
    replies.clear();
    return more;
  }
  void run() {
    while (step()) {
    }
  }
  SchedulerSnapshot snapshot() const { return scheduler.snapshot(SnapshotDetail::kPages); }

  NullRunner runner;
  Scheduler scheduler;
  std::vector<Reply> replies;
  std::map<int64_t, Reply> last;
};

TEST(Snapshot, SaysWhatRunsAndWhoOwnsThePages) {
  World world;
  world.submit(request_of(7, 0, 10, 20));
  world.step();
  const SchedulerSnapshot snapshot = world.snapshot();
  ASSERT_EQ(snapshot.running.size(), 1u);
  const RequestSnapshot& request = snapshot.running.front();
  EXPECT_EQ(request.uid, 7);
  EXPECT_EQ(request.state, "decode");
  EXPECT_EQ(request.prompt_tokens, 10);
  EXPECT_EQ(request.computed_tokens, 10);
  EXPECT_EQ(request.generated_tokens, 1);
  EXPECT_EQ(request.max_tokens, 30);
  EXPECT_EQ(request.shared_pages, 2);  // the two whole pages of its prompt
  EXPECT_EQ(request.own_pages, 1);
  EXPECT_EQ(request.waits_for, WaitReason::kNone);
  EXPECT_EQ(snapshot.pages.free, 61);
  EXPECT_EQ(snapshot.pages.cached, 2);
  EXPECT_EQ(snapshot.pages.locked, 2);
  EXPECT_EQ(snapshot.pages.owned, 1);
  EXPECT_EQ(snapshot.rows_free, 3);
  ASSERT_EQ(snapshot.page_owners.size(), 3u);
  EXPECT_EQ(snapshot.page_owners[0].owner, PageRun::kCached);
  EXPECT_EQ(snapshot.page_owners[1].owner, 7);
  EXPECT_EQ(snapshot.page_owners[2].owner, PageRun::kFree);
  EXPECT_EQ(snapshot.page_owners[2].num_pages, 61);
  ASSERT_EQ(snapshot.last_steps.size(), 1u);
  EXPECT_EQ(snapshot.last_steps[0].prefill_tokens, 10);
  EXPECT_EQ(snapshot.last_steps[0].decode_tokens, 0);
  EXPECT_GT(snapshot.last_steps[0].schedule_us, 0.0);
}

TEST(Snapshot, TheLastStepsAreARing) {
  World world;
  world.submit(request_of(0, 0, 4, 100));
  world.run();
  const SchedulerSnapshot snapshot = world.snapshot();
  ASSERT_EQ(snapshot.last_steps.size(), StepHistory::kLength);
  EXPECT_EQ(snapshot.last_steps.back().number, 99u);
  EXPECT_EQ(snapshot.last_steps.front().number, 100u - StepHistory::kLength);
  EXPECT_EQ(snapshot.last_steps.back().decode_tokens, 1);
  EXPECT_EQ(snapshot.counters.steps, 100);
  EXPECT_EQ(snapshot.counters.tokens_generated, 100);
  EXPECT_EQ(snapshot.counters.finished[static_cast<size_t>(FinishReason::kLength)], 1);
}

TEST(Snapshot, SaysThatARowIsMissingAndWhoStandsBehind) {
  StepRunner::Limits limits = kLimits;
  limits.max_running_requests = 1;
  World world(limits);
  for (int32_t uid = 0; uid < 3; ++uid) world.submit(request_of(uid, 100 * uid, 4, 20));
  EXPECT_EQ(world.snapshot().waiting[0].waits_for, WaitReason::kArrived);
  world.step();
  const SchedulerSnapshot snapshot = world.snapshot();
  ASSERT_EQ(snapshot.waiting.size(), 2u);
  EXPECT_EQ(snapshot.waiting[0].waits_for, WaitReason::kRow);
  EXPECT_EQ(snapshot.waiting[0].waited_steps, 1);
  EXPECT_EQ(snapshot.waiting[1].waits_for, WaitReason::kBehind);
  EXPECT_EQ(snapshot.waiting[1].behind, 1);
}

TEST(Snapshot, SaysThatPagesAreMissing) {
  StepRunner::Limits limits = kLimits;
  limits.num_pages = 8;
  World world(limits);
  world.submit(request_of(0, 0, 20, 10));
  world.submit(request_of(1, 100, 20, 10));
  world.step();
  ASSERT_EQ(world.snapshot().waiting.size(), 1u);
  EXPECT_EQ(world.snapshot().waiting[0].waits_for, WaitReason::kPages);
}

TEST(Snapshot, SaysThatTheBudgetIsUsed) {
  World world;
  world.submit(request_of(0, 0, 60, 4));
  world.submit(request_of(1, 500, 20, 4));
  world.step();
  ASSERT_EQ(world.snapshot().waiting.size(), 1u);
  EXPECT_EQ(world.snapshot().waiting[0].waits_for, WaitReason::kBudget);
}

TEST(Snapshot, SaysThatAPrefixIsBeingComputed) {
  World world;
  world.submit(request_of(0, 0, 20, 4));
  world.submit(request_of(1, 0, 24, 4));
  world.step();
  ASSERT_EQ(world.snapshot().waiting.size(), 1u);
  EXPECT_EQ(world.snapshot().waiting[0].waits_for, WaitReason::kSharedPrefix);
}

TEST(Snapshot, IsJsonToo) {
  World world;
  for (int32_t uid = 0; uid < 6; ++uid) world.submit(request_of(uid, 100 * uid, 4, 20));
  world.step();
  const Json json = to_json(world.snapshot());
  EXPECT_EQ(json.at("running").size(), 4u);
  EXPECT_EQ(json.at("waiting").at(0).at("waits_for"), wait_reason_name(WaitReason::kRow));
  EXPECT_EQ(json.at("waiting").at(1).at("behind"), 4);
  EXPECT_EQ(json.at("pages").at("total"), 64);
  EXPECT_EQ(json.at("counters").at("submitted"), 6);
}

TEST(Reasons, AReplyNamesTheRuleThatEndedIt) {
  World world;
  world.submit(request_of(0, 1, 4, 3));  // the runner draws token 0 for ever
  GenerateRequest ends = request_of(1, 1, 4, 3);
  ends.eos_token_ids = {0};
  world.submit(ends);
  GenerateRequest stops = request_of(2, 1, 4, 3);
  stops.sampling_params.stop_token_ids = {0};
  world.submit(stops);
  GenerateRequest late = request_of(4, 1, 4, 3);
  late.deadline = Clock::now() - std::chrono::seconds(1);
  world.submit(late);
  world.submit(request_of(3, 1, 4, 1000));
  world.run();
  EXPECT_EQ(world.last[0].rule, EndRule::kMaxTokens);
  EXPECT_EQ(world.last[1].rule, EndRule::kEndOfText);
  EXPECT_EQ(world.last[2].rule, EndRule::kStopToken);
  EXPECT_EQ(world.last[3].rule, EndRule::kContextFull);
  EXPECT_EQ(world.last[4].rule, EndRule::kDeadline);
  world.submit(request_of(5, 1, 4, 3));
  world.scheduler.abort(5, world.replies);
  EXPECT_EQ(world.replies.back().rule, EndRule::kAborted);
  world.submit(request_of(6, 1, 4000, 3));
  EXPECT_EQ(world.replies.back().rule, EndRule::kRefused);
}

TEST(Reasons, AReplySaysWhereItsPrefixStoppedMatching) {
  World world;
  world.submit(request_of(0, 0, 20, 2));
  world.run();
  EXPECT_EQ(world.last[0].prefix_stop, "not cached");
  GenerateRequest other = request_of(1, 0, 20, 2);
  other.input_ids[10] = 999;
  world.submit(other);
  world.run();
  EXPECT_EQ(world.last[1].cached_tokens, 8);
  EXPECT_EQ(world.last[1].prefix_agreeing_tokens, 10);
  EXPECT_EQ(world.last[1].prefix_stop, "differs");
  world.submit(request_of(2, 0, 21, 2));
  world.run();
  EXPECT_EQ(world.last[2].cached_tokens, 20);
  EXPECT_EQ(world.last[2].prefix_stop, "complete");
}

}  // namespace
}  // namespace minisgl::testing
