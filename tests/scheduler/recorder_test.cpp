#include "scheduler/recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "scheduler/mock_runner.h"
#include "scheduler/replay.h"
#include "utils/files.h"

namespace minisgl::testing {
namespace {

using ::testing::HasSubstr;

constexpr StepRunner::Limits kLimits = {.num_pages = 48,
                                        .page_size = 2,
                                        .max_seq_len = 64,
                                        .max_running_requests = 3,
                                        .max_prefill_tokens = 12,
                                        .vocab_size = 500};

GenerateRequest request_of(int64_t uid) {
  GenerateRequest request;
  request.uid = uid;
  for (int32_t i = 0; i < 10 + 3 * uid; ++i) request.input_ids.push_back(i % 5 + (i > 8) * uid);
  request.sampling_params.max_tokens = 12;
  request.sampling_params.seed = 0xFFFF'FFFF'FFFF'FFF0;
  request.sampling_params.stop = {"\"quoted\"\n"};
  request.priority = static_cast<int>(uid % 2);
  request.cache_salt = static_cast<uint64_t>(uid % 3);
  return request;
}

// A life with everything that a recording knows; its text.
std::string record_a_life() {
  const std::string path = ::testing::TempDir() + "/recording.jsonl";
  Recorder recorder(path, {{"machine", "a mock"}});
  MockRunner runner(kLimits, 1);
  Scheduler scheduler(runner, {});
  scheduler.record_to(&recorder);
  std::vector<Reply> replies;
  for (int64_t uid = 0; uid < 6; ++uid) scheduler.submit(request_of(uid), replies);
  GenerateRequest late = request_of(6);
  late.deadline = Clock::now() - std::chrono::seconds(1);
  scheduler.submit(std::move(late), replies);
  GenerateRequest refused = request_of(7);
  refused.input_ids.clear();
  scheduler.submit(std::move(refused), replies);
  for (int i = 0; i < 4; ++i) scheduler.step(replies);
  scheduler.abort(1, replies);
  scheduler.flush_cache();
  while (scheduler.step(replies)) {
  }
  return read_file(path);
}

ReplayResult replay_text(const std::string& text) {
  std::istringstream stream(text);
  EXPECT_EQ(read_recording_setup(stream).at("machine"), "a mock");
  MockRunner runner(kLimits, 99);  // runs its steps at other moments
  Scheduler scheduler(runner, {});
  return replay(stream, scheduler);
}

TEST(Recorder, KeepsEverythingThatARequestAsksFor) {
  GenerateRequest request = request_of(3);
  request.sampling_params = {.temperature = 0.5,
                             .top_k = 7,
                             .top_p = 0.25,
                             .min_p = 0.125,
                             .repetition_penalty = 1.5,
                             .frequency_penalty = -0.5,
                             .presence_penalty = 0.75,
                             .logit_bias = {{4, -2.5}, {9, 100}},
                             .seed = 11,
                             .max_tokens = 30,
                             .min_tokens = 5,
                             .ignore_eos = true,
                             .stop_token_ids = {3},
                             .logprobs = 2,
                             .prompt_logprobs = 0};
  const SamplingParams got = request_from_json(to_json(request)).sampling_params;
  EXPECT_EQ(got.repetition_penalty, 1.5);
  EXPECT_EQ(got.frequency_penalty, -0.5);
  EXPECT_EQ(got.presence_penalty, 0.75);
  ASSERT_EQ(got.logit_bias.size(), 2u);
  EXPECT_EQ(got.logit_bias[1].token, 9);
  EXPECT_EQ(got.logit_bias[0].bias, -2.5);
  EXPECT_EQ(got.min_tokens, 5);
  EXPECT_EQ(got.logprobs, 2);
  EXPECT_EQ(got.prompt_logprobs, 0);
  EXPECT_EQ(to_json(request_from_json(to_json(request))), to_json(request));
}

TEST(Replay, ComesOutAsRecorded) {
  const std::string recording = record_a_life();
  EXPECT_THAT(recording, HasSubstr(R"({"abort":1})"));
  EXPECT_THAT(recording, HasSubstr(R"({"timeout":6})"));
  EXPECT_THAT(recording, HasSubstr(R"({"flush":true})"));
  const ReplayResult result = replay_text(recording);
  EXPECT_FALSE(result.difference) << result.difference->recorded << "\n"
                                  << result.difference->replayed;
  EXPECT_GT(result.num_turns, 20);
  EXPECT_GT(result.num_tokens, 50);
}

TEST(Replay, NamesTheFirstDifference) {
  std::string recording = record_a_life();
  const size_t abort = recording.find("{\"abort\"");
  const size_t length = recording.find('\n', abort) + 1 - abort;
  const int64_t line = std::count(recording.begin(), recording.begin() + abort, '\n') + 1;
  recording.erase(abort, length);
  const ReplayResult result = replay_text(recording);
  ASSERT_TRUE(result.difference);
  EXPECT_GE(result.difference->line, line);
  EXPECT_NE(result.difference->recorded, result.difference->replayed);
}

TEST(Replay, EndsWhereACrashCutTheRecording) {
  const std::string recording = record_a_life();
  const int64_t num_turns = replay_text(recording).num_turns;
  const ReplayResult result = replay_text(recording.substr(0, recording.size() - 5));
  EXPECT_FALSE(result.difference);
  EXPECT_EQ(result.num_turns, num_turns - 1);
}

TEST(Replay, RefusesOtherFiles) {
  const std::string setup = "{\"minisgl_recording\":1,\"machine\":\"a mock\"}\n";
  for (const std::string& text :
       {std::string(), std::string("hello\n"), std::string("{}\n"), std::string("[1]\n"),
        setup + "[]\n", setup + "{\"else\":1}\n", setup + "{\"abort\":\"x\"}\n",
        setup + "{\"submit\":{\"uid\":1}}\n", setup + "{\"submit\":3}\n", setup + "{\n"}) {
    EXPECT_THROW(replay_text(text), Error) << text;
  }
}

}  // namespace
}  // namespace minisgl::testing
