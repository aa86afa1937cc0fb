#include "utils/random.h"

#include <gtest/gtest.h>

#include <set>

namespace minisgl {
namespace {

struct PhiloxCase {
  const char* name;
  std::array<uint32_t, 4> counter;
  std::array<uint32_t, 2> key;
  std::array<uint32_t, 4> expected;
};

class Philox : public testing::TestWithParam<PhiloxCase> {};

TEST_P(Philox, GivesThePublishedKnownAnswer) {
  EXPECT_EQ(philox4x32(GetParam().counter, GetParam().key), GetParam().expected);
}

constexpr uint32_t kOnes = 0xffffffff;
INSTANTIATE_TEST_SUITE_P(
    KnownAnswers, Philox,
    testing::ValuesIn<PhiloxCase>({
        {"Zeros", {0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {"Ones",
         {kOnes, kOnes, kOnes, kOnes},
         {kOnes, kOnes},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {"DigitsOfPi",
         {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    }),
    [](const auto& info) { return std::string(info.param.name); });

TEST(RandomUniform, IsAFunctionOfSeedPositionAndStream) {
  EXPECT_EQ(random_uniform(7, 3), random_uniform(7, 3));
  const std::set<double> draws = {
      random_uniform(7, 3),         random_uniform(7, 4), random_uniform(8, 3),
      random_uniform(7, 3, 1),      random_uniform(3, 7), random_uniform(7, uint64_t{3} << 32),
      random_uniform(7ull << 32, 3)};
  EXPECT_EQ(draws.size(), 7u);
}

TEST(RandomUniform, FillsTheUnitIntervalEvenly) {
  constexpr int kDraws = 100000;
  std::array<int, 10> bins{};
  double sum = 0.0;
  for (int i = 0; i < kDraws; ++i) {
    const double u = random_uniform(42, static_cast<uint64_t>(i));
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    ++bins[static_cast<size_t>(u * 10)];
    sum += u;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.005);
  // 10000 expected a bin; the standard deviation is 95.
  for (const int bin : bins) EXPECT_NEAR(bin, kDraws / 10, 500);
}

}  // namespace
}  // namespace minisgl
