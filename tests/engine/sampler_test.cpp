#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace minisgl {
namespace {

constexpr int kDraws = 20000;

std::vector<double> frequencies(const std::vector<float>& logits, const SamplingParams& params) {
  Sampler sampler(static_cast<int64_t>(logits.size()));
  std::vector<double> counts(logits.size());
  for (int i = 0; i < kDraws; ++i)
    ++counts[static_cast<size_t>(sampler.sample(logits, params, 5, i))];
  for (double& count : counts) count /= kDraws;
  return counts;
}

TEST(Sampler, GreedyTakesTheLowestIdOfEqualMaxima) {
  Sampler sampler(4);
  EXPECT_EQ(sampler.sample(std::vector<float>{1, 3, 3, 2}, {}, 0, 0), 1);
  EXPECT_EQ(sampler.sample(std::vector<float>{1, 3, 3, 2}, {.temperature = 1.0, .top_k = 1}, 0, 0),
            1);
}

TEST(Sampler, NaNIsNeverChosen) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  Sampler sampler(3);
  EXPECT_EQ(sampler.sample(std::vector<float>{kNaN, -5, kNaN}, {}, 0, 0), 1);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(sampler.sample(std::vector<float>{kNaN, -5, kNaN}, {.temperature = 1.0}, 0, i), 1);
  }
}

TEST(Sampler, DrawsFollowTheSoftmax) {
  const auto f = frequencies({5, 4, 1}, {.temperature = 1.0, .top_k = 2});
  EXPECT_NEAR(f[0], 0.731, 0.01);
  EXPECT_NEAR(f[1], 0.269, 0.01);
  EXPECT_EQ(f[2], 0.0);
}

TEST(Sampler, TopPKeepsTheShortestPrefixThatReachesIt) {
  // Probabilities 0.5, 0.3, 0.2.
  const std::vector<float> logits = {std::log(0.3f), std::log(0.5f), std::log(0.2f)};
  EXPECT_NEAR(frequencies(logits, {.temperature = 1.0, .top_p = 0.6})[0], 0.375, 0.01);
  EXPECT_EQ(frequencies(logits, {.temperature = 1.0, .top_p = 0.6})[2], 0.0);
  EXPECT_EQ(frequencies(logits, {.temperature = 1.0, .top_p = 0.4})[1], 1.0);
}

TEST(Sampler, MinPIsRelativeToTheMostLikely) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.2f)};
  const auto f = frequencies(logits, {.temperature = 1.0, .min_p = 0.5});
  EXPECT_NEAR(f[0], 0.625, 0.01);
  EXPECT_EQ(f[2], 0.0);
}

TEST(Sampler, ADrawDependsOnSeedAndPositionAlone) {
  const std::vector<float> logits(100, 0.0f);
  Sampler one(100), other(100);
  bool differs = false;
  for (int64_t position = 0; position < 20; ++position) {
    const int32_t a = one.sample(logits, {.temperature = 1.0}, 3, position);
    other.sample(logits, {.temperature = 0.5}, 9, position + 7);
    EXPECT_EQ(other.sample(logits, {.temperature = 1.0}, 3, position), a);
    differs |= other.sample(logits, {.temperature = 1.0}, 4, position) != a;
  }
  EXPECT_TRUE(differs);
}

TEST(Sampler, ExtremeTemperaturesStayFinite) {
  Sampler sampler(3);
  const std::vector<float> logits = {1e30f, -1e30f, 0};
  EXPECT_EQ(sampler.sample(logits, {.temperature = 1e-6}, 1, 1), 0);
  EXPECT_EQ(sampler.sample(logits, {.temperature = 100.0}, 1, 1), 0);
}

}  // namespace
}  // namespace minisgl
