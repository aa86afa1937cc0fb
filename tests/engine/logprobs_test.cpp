#include "engine/logprobs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace minisgl {
namespace {

std::vector<TokenLogprob> reported(const std::vector<float>& logits, int32_t token, size_t top) {
  std::vector<TokenLogprob> out(1 + top);
  report_logprobs(logits, token, out);
  return out;
}

TEST(Logprobs, AreTheLogarithmOfTheSoftmax) {
  const std::vector<float> logits = {std::log(0.2f), std::log(0.5f), std::log(0.3f)};
  const auto out = reported(logits, 0, 2);
  EXPECT_EQ(out[0].token, 0);
  EXPECT_NEAR(out[0].logprob, std::log(0.2), 1e-6);
  EXPECT_EQ(out[1].token, 1);
  EXPECT_NEAR(out[1].logprob, std::log(0.5), 1e-6);
  EXPECT_EQ(out[2].token, 2);
  EXPECT_NEAR(out[2].logprob, std::log(0.3), 1e-6);
}

TEST(Logprobs, DoNotDependOnAConstantAddedToAllLogits) {
  EXPECT_NEAR(reported({1000, 1001, 998}, 0, 0)[0].logprob, reported({0, 1, -2}, 0, 0)[0].logprob,
              1e-4);
}

TEST(Logprobs, TheMostLikelyComeInOrderAndOfEqualsTheLowestIdFirst) {
  const auto out = reported({1, 3, 2, 3, 3, 0, 2}, 5, 5);
  std::vector<int32_t> ids;
  for (size_t i = 1; i < out.size(); ++i) ids.push_back(out[i].token);
  EXPECT_EQ(ids, (std::vector<int32_t>{1, 3, 4, 2, 6}));
  EXPECT_EQ(reported({1, 3, 2}, 0, 3)[3].token, 0);  // as many as there are
}

TEST(Logprobs, AreFiniteWhateverTheLogits) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float nan = std::nanf("");
  const std::vector<std::vector<float>> rows = {
      {0, -kInf, 1},      {nan, nan, nan}, {kInf, kInf, 0},   {-kInf, -kInf, -kInf},
      {3e38f, -3e38f, 0}, {nan, 0, kInf},  {1e30f, 0, -1e30f}};
  for (const auto& row : rows) {
    for (int32_t token = 0; token < 3; ++token) {
      for (const TokenLogprob& entry : reported(row, token, 3)) {
        EXPECT_TRUE(std::isfinite(entry.logprob));
        EXPECT_GE(entry.logprob, kLeastLogprob);
        EXPECT_LE(entry.logprob, 0.0f);
        EXPECT_GE(entry.token, 0);
        EXPECT_LT(entry.token, 3);
      }
    }
  }
  EXPECT_EQ(reported({0, -kInf, 1}, 1, 0)[0].logprob, kLeastLogprob);
}

}  // namespace
}  // namespace minisgl
