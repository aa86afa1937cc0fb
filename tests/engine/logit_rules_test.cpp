#include "engine/logit_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/sampler.h"

namespace minisgl {
namespace {

using ::testing::ElementsAre;

constexpr float kInf = std::numeric_limits<float>::infinity();

// Prompt 0 0 1, answer 1 2 2.
const std::vector<int32_t> kTokens = {0, 0, 1, 1, 2, 2};
constexpr int64_t kPrompt = 3;

std::vector<float> applied(const std::vector<float>& logits, const SamplingParams& params,
                           std::vector<int32_t> eos = {},
                           const std::vector<int32_t>& tokens = kTokens) {
  LogitRules rules(static_cast<int64_t>(logits.size()));
  const auto once = [&] {
    const auto result = rules.apply(
        logits, params, {.tokens = tokens, .prompt_len = kPrompt, .eos_token_ids = eos});
    return std::vector<float>(result.begin(), result.end());
  };
  const std::vector<float> first = once();
  EXPECT_EQ(once(), first) << "something was left over from the call before";
  return first;
}

TEST(LogitRules, WithoutRulesLogitsAreNotEvenCopied) {
  const std::vector<float> logits = {1, 2, 3};
  LogitRules rules(3);
  EXPECT_EQ(rules.apply(logits, {.temperature = 0.5, .top_k = 2}, {}).data(), logits.data());
}

TEST(LogitRules, RepetitionDividesWhatIsPositiveAndMultipliesTheRestOfPromptAndAnswer) {
  EXPECT_THAT(applied({2, -2, 1, 5}, {.repetition_penalty = 2.0}), ElementsAre(1, -4, 0.5, 5));
}

TEST(LogitRules, FrequencyCountsAndPresenceDoesNotAndBothLookAtTheAnswerAlone) {
  EXPECT_THAT(applied({0, 0, 0, 0}, {.frequency_penalty = 0.5}), ElementsAre(0, -0.5, -1, 0));
  EXPECT_THAT(applied({0, 0, 0, 0}, {.presence_penalty = 0.5}), ElementsAre(0, -0.5, -0.5, 0));
  EXPECT_THAT(applied({0, 0, 0, 0}, {.frequency_penalty = -1.0, .presence_penalty = 0.25}),
              ElementsAre(0, 0.75, 1.75, 0));
}

TEST(LogitRules, BiasIsAddedBeforeAnythingElseAndOftenGivenAddsUp) {
  EXPECT_THAT(applied({1, 1, 1, 1}, {.logit_bias = {{3, 2.5}, {0, -100}, {3, 1}}}),
              ElementsAre(-99, 1, 1, 4.5));
  EXPECT_THAT(applied({1, 1, 1, 1}, {.repetition_penalty = 2.0, .logit_bias = {{0, 3}}}),
              ElementsAre(2, 0.5, 0.5, 1));
}

TEST(LogitRules, BeforeMinTokensNothingThatEndsTheAnswerCanBeDrawn) {
  SamplingParams params{.min_tokens = 4, .stop_token_ids = {1}};
  EXPECT_THAT(applied({9, 8, 7, 6}, params, {0, 99, -1}), ElementsAre(-kInf, -kInf, 7, 6));
  params.ignore_eos = true;  // then the end-of-text token does not end it
  EXPECT_THAT(applied({9, 8, 7, 6}, params, {0}), ElementsAre(9, -kInf, 7, 6));
  params.min_tokens = 3;  // three are there
  EXPECT_THAT(applied({9, 8, 7, 6}, params, {0}), ElementsAre(9, 8, 7, 6));
}

TEST(LogitRules, TokensOutsideTheVocabularyAreNoBodysCount) {
  EXPECT_THAT(applied({1, 1}, {.frequency_penalty = 1.0}, {}, {0, 0, 0, 1, 7, -3}),
              ElementsAre(1, 0));
}

TEST(Sampler, ChoosesFromWhatTheRulesLeave) {
  Sampler sampler(4);
  const TokenHistory history = {.tokens = kTokens, .prompt_len = kPrompt};
  const std::vector<float> logits = {5, 4, 4.5, 3};
  EXPECT_EQ(sampler.sample(logits, {}, 0, 6, history), 0);
  EXPECT_EQ(sampler.sample(logits, {.logit_bias = {{0, -100}}}, 0, 6, history), 2);
  EXPECT_EQ(
      sampler.sample(logits, {.frequency_penalty = 2.0, .logit_bias = {{0, -100}}}, 0, 6, history),
      3);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(sampler.sample(logits, {.temperature = 1.0, .logit_bias = {{1, 100}}}, 7, i, history),
              1);
  }
}

TEST(Sampler, LogitsThatAreNoDistributionStillGiveAToken) {
  Sampler sampler(3);
  const float nan = std::nanf("");
  EXPECT_EQ(sampler.sample(std::vector<float>{-kInf, -kInf, -kInf}, {.temperature = 1}, 1, 1), 0);
  EXPECT_EQ(sampler.sample(std::vector<float>{nan, nan, nan}, {.temperature = 1}, 1, 1) / 3, 0);
  EXPECT_EQ(sampler.sample(std::vector<float>{0, kInf, 0}, {.temperature = 1, .top_p = 0.3}, 1, 1),
            1);
}

}  // namespace
}  // namespace minisgl
