// Requests with every sampling parameter through a real model and the whole scheduler.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "engine/golden_model.h"
#include "engine/logprobs.h"
#include "engine/sampler.h"

namespace minisgl::testing {
namespace {

constexpr int64_t kTokens = 24;

// What a request got.
struct Received {
  std::vector<int32_t> tokens;
  std::vector<PositionLogprobs> logprobs;
  std::vector<PositionLogprobs> prompt_logprobs;
  int64_t cached_tokens = 0;
  std::string prefix_stop;
  FinishReason reason = FinishReason::kNone;
};

// All numbers in order: exactly equal when the same was reported.
std::vector<double> flat(const std::vector<PositionLogprobs>& positions) {
  std::vector<double> numbers;
  for (const PositionLogprobs& position : positions) {
    numbers.insert(numbers.end(), {double(position.token.token), position.token.logprob});
    for (const TokenLogprob& top : position.top) {
      numbers.insert(numbers.end(), {double(top.token), top.logprob});
    }
  }
  return numbers;
}

void expect_same(const Received& got, const Received& want, const std::string& what) {
  EXPECT_EQ(got.tokens, want.tokens) << what;
  EXPECT_EQ(flat(got.logprobs), flat(want.logprobs)) << what;
  EXPECT_EQ(flat(got.prompt_logprobs), flat(want.prompt_logprobs)) << what;
  EXPECT_EQ(got.reason, want.reason) << what;
}

struct Case {
  const char* name;
  SamplingParams params;
};

std::vector<Case> cases() {
  return {
      {"plain", {}},
      {"repetition", {.repetition_penalty = 1.3}},
      {"frequency and presence",
       {.temperature = 0.8, .frequency_penalty = 1.5, .presence_penalty = 0.5, .seed = 3}},
      {"bias, seed, min_p", {.temperature = 1.0, .min_p = 0.02, .logit_bias = {{7, 3}}, .seed = 5}},
      {"logprobs", {.temperature = 1.0, .top_p = 0.3, .seed = 6, .logprobs = 5}},
      {"prompt logprobs", {.repetition_penalty = 1.1, .logprobs = 0, .prompt_logprobs = 3}},
      {"everything",
       {.temperature = 0.01,
        .repetition_penalty = 0.9,
        .frequency_penalty = -0.5,
        .seed = 8,
        .min_tokens = 5,
        .logprobs = 2,
        .prompt_logprobs = 0}},
  };
}

std::vector<int32_t> prompt(size_t i) {
  // Prefixes are shared in part; lengths differ.
  std::vector<int32_t> ids;
  for (size_t t = 0; t < 18 + 5 * i; ++t) {
    ids.push_back(static_cast<int32_t>((t * 7 + (t > 12 ? i : 0)) % 90 + 3));
  }
  return ids;
}

class Sampling : public ::testing::Test {
 protected:
  static EngineConfig engine_config() {
    EngineConfig config;
    config.model_path = open_golden("models/qwen3").model();
    config.dtype = "float32";
    config.threads = 2;
    config.max_running_requests = 8;
    config.num_pages = 1024;
    config.max_seq_len = 128;
    return config;
  }

  static GenerateRequest request(int64_t uid, const SamplingParams& params) {
    GenerateRequest request;
    request.uid = uid;
    request.input_ids = prompt(static_cast<size_t>(uid));
    request.sampling_params = params;
    request.sampling_params.max_tokens = kTokens;
    return request;
  }

  static std::map<int64_t, Received> run(Scheduler& scheduler,
                                         std::vector<GenerateRequest> requests) {
    std::vector<Reply> replies;
    std::map<int64_t, Received> of;
    for (GenerateRequest& r : requests) scheduler.submit(std::move(r), replies);
    for (bool more = true; more;) {
      more = scheduler.step(replies);
      scheduler.check_integrity();
    }
    for (Reply& reply : replies) {
      EXPECT_NE(reply.reason, FinishReason::kError) << reply.error;
      Received& received = of[reply.uid];
      if (reply.token >= 0) received.tokens.push_back(reply.token);
      if (reply.logprobs) received.logprobs.push_back(std::move(*reply.logprobs));
      for (PositionLogprobs& p : reply.prompt_logprobs) received.prompt_logprobs.push_back(p);
      received.cached_tokens = reply.cached_tokens;
      received.prefix_stop = reply.prefix_stop;
      received.reason = reply.reason;
    }
    return of;
  }

  static Received run_alone(Engine& engine, GenerateRequest r) {
    Scheduler scheduler(engine, {.cache_type = "naive", .overlap = false});
    const int64_t uid = r.uid;
    std::vector<GenerateRequest> one;
    one.push_back(std::move(r));
    return run(scheduler, std::move(one))[uid];
  }
};

TEST_F(Sampling, IsTheSameAloneTogetherOverlappedChunkedAndRetracted) {
  Engine engine(engine_config());
  std::map<int64_t, Received> alone;
  for (size_t i = 0; i < cases().size(); ++i) {
    const auto uid = static_cast<int64_t>(i);
    alone[uid] = run_alone(engine, request(uid, cases()[i].params));
  }
  int64_t retracted = 0;
  for (const bool overlap : {false, true}) {
    for (const int64_t num_pages : {300, 26}) {
      EngineConfig config = engine_config();
      config.page_size = 4;
      config.num_pages = num_pages;
      config.max_prefill_tokens = num_pages == 26 ? 7 : 64;
      Engine other(config);
      Scheduler scheduler(other, {.overlap = overlap});
      std::vector<GenerateRequest> requests;
      for (size_t i = 0; i < cases().size(); ++i) {
        requests.push_back(request(static_cast<int64_t>(i), cases()[i].params));
      }
      auto together = run(scheduler, std::move(requests));
      for (size_t i = 0; i < cases().size(); ++i) {
        const auto uid = static_cast<int64_t>(i);
        expect_same(together[uid], alone[uid],
                    fmt::format("{}, overlap {}, {} pages", cases()[i].name, overlap, num_pages));
      }
      retracted += scheduler.num_retracted();
    }
  }
  EXPECT_GT(retracted, 0) << "the pool was meant to be too small";
}

// By the definition, from the logits of the whole text.
TEST_F(Sampling, EveryTokenIsTheMostLikelyOneOfThePenalisedLogits) {
  Engine engine(engine_config());
  const SamplingParams params{
      .repetition_penalty = 1.4, .frequency_penalty = 0.7, .presence_penalty = 0.4};
  const auto text = prompt(2);
  const Received got = run_alone(engine, request(2, params));
  std::vector<int32_t> tokens = text;
  tokens.insert(tokens.end(), got.tokens.begin(), got.tokens.end());
  const std::vector<float> all = logits_of(engine, tokens, 64);
  const size_t vocab = all.size() / tokens.size();
  for (size_t at = text.size(); at < tokens.size(); ++at) {
    std::vector<float> row(all.begin() + static_cast<std::ptrdiff_t>((at - 1) * vocab),
                           all.begin() + static_cast<std::ptrdiff_t>(at * vocab));
    for (size_t id = 0; id < vocab; ++id) {
      const auto begin = tokens.begin(), now = begin + static_cast<std::ptrdiff_t>(at);
      const auto answer = begin + static_cast<std::ptrdiff_t>(text.size());
      const auto token = static_cast<int32_t>(id);
      if (std::find(begin, now, token) != now) {
        row[id] = row[id] > 0 ? row[id] / 1.4f : row[id] * 1.4f;
      }
      const auto count = std::count(answer, now, token);
      row[id] -= 0.7f * static_cast<float>(count) + (count > 0 ? 0.4f : 0.0f);
    }
    EXPECT_EQ(tokens[at], argmax(row)) << "answer token " << at - text.size();
  }
  EXPECT_NE(got.tokens, run_alone(engine, request(2, {})).tokens) << "penalties changed nothing";
}

TEST_F(Sampling, LogprobsAreOfTheModelItselfWhateverIsDoneToItsLogits) {
  Engine engine(engine_config());
  const SamplingParams params{.temperature = 0.01,
                              .top_p = 0.3,
                              .frequency_penalty = 1.0,
                              .seed = 1,
                              .logprobs = 4,
                              .prompt_logprobs = 2};
  const auto text = prompt(1);
  const Received got = run_alone(engine, request(1, params));
  std::vector<int32_t> tokens = text;
  tokens.insert(tokens.end(), got.tokens.begin(), got.tokens.end());
  const std::vector<float> all = logits_of(engine, tokens, 64);
  const size_t vocab = all.size() / tokens.size();
  std::vector<PositionLogprobs> expected;
  for (size_t at = 1; at < tokens.size(); ++at) {
    std::vector<TokenLogprob> out(at < text.size() ? 3 : 5);
    report_logprobs(std::span(all).subspan((at - 1) * vocab, vocab), tokens[at], out);
    expected.push_back({.token = out[0], .top = {out.begin() + 1, out.end()}});
  }
  const auto split = expected.begin() + static_cast<std::ptrdiff_t>(text.size() - 1);
  EXPECT_EQ(flat(got.prompt_logprobs), flat({expected.begin(), split}));
  EXPECT_EQ(flat(got.logprobs), flat({split, expected.end()}));
}

TEST_F(Sampling, ACachedPrefixHidesNoPositionOfThePrompt) {
  Engine engine(engine_config());
  Scheduler scheduler(engine, {});
  const Received cold = run(scheduler, {request(3, {.prompt_logprobs = 1})})[3];
  const Received plain = run(scheduler, {request(3, {})})[3];
  EXPECT_GT(plain.cached_tokens, 0);
  const Received warm = run(scheduler, {request(3, {.prompt_logprobs = 1})})[3];
  EXPECT_EQ(warm.cached_tokens, 0) << "such a prompt is computed in full";
  EXPECT_EQ(warm.prefix_stop, "prompt logprobs");
  EXPECT_NE(plain.prefix_stop, "prompt logprobs");
  EXPECT_EQ(warm.prompt_logprobs.size(), prompt(3).size() - 1);
  expect_same(warm, cold, "warm");
  EXPECT_TRUE(plain.prompt_logprobs.empty());
}

TEST_F(Sampling, MinTokensHoldsBackEveryEndAndIgnoreEosGoesOnPastIt) {
  Engine engine(engine_config());
  const Received free = run_alone(engine, request(0, {}));
  const auto with = [&](SamplingParams params) {
    GenerateRequest r = request(0, params);
    r.eos_token_ids = {free.tokens[2]};
    return run_alone(engine, std::move(r));
  };
  EXPECT_EQ(with({}).reason, FinishReason::kStop);
  EXPECT_LE(with({}).tokens.size(), 3u);
  const Received held = with({.min_tokens = 10});
  EXPECT_GE(held.tokens.size(), 10u);
  EXPECT_EQ(std::count(held.tokens.begin(), held.tokens.begin() + 10, free.tokens[2]), 0);
  expect_same(with({.ignore_eos = true}), free, "ignore_eos");
  EXPECT_EQ(std::count(held.tokens.begin(), held.tokens.end(), free.tokens[2]),
            held.reason == FinishReason::kStop);
}

TEST_F(Sampling, LogitBiasForcesAndBansOnlyInItsOwnRequest) {
  Engine engine(engine_config());
  const Received free = run_alone(engine, request(4, {}));
  Scheduler scheduler(engine, {});
  auto got = run(scheduler, {request(4, {}), request(5, {.logit_bias = {{11, 100}}}),
                             request(6, {.logit_bias = {{free.tokens[0], -100}}})});
  EXPECT_EQ(got[4].tokens, free.tokens);
  EXPECT_EQ(got[5].tokens, std::vector<int32_t>(kTokens, 11));
  EXPECT_EQ(std::count(got[6].tokens.begin(), got[6].tokens.end(), free.tokens[0]), 0);
}

}  // namespace
}  // namespace minisgl::testing
