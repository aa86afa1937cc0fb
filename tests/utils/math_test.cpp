#include "utils/math.h"

#include <gtest/gtest.h>

#include <limits>

namespace minisgl {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

TEST(Math, RoundsToMultiples) {
  EXPECT_EQ(div_ceil(0, 4), 0);
  EXPECT_EQ(div_ceil(1, 4), 1);
  EXPECT_EQ(div_ceil(8, 4), 2);
  EXPECT_EQ(align_up(5, 4), 8);
  EXPECT_EQ(align_up(8, 4), 8);
  EXPECT_EQ(align_down(7, 4), 4);
}

TEST(Math, CheckedProductsAndSumsAreEmptyOnOverflow) {
  EXPECT_EQ(checked_mul(uint64_t{1} << 31, uint64_t{1} << 32), uint64_t{1} << 63);
  EXPECT_EQ(checked_mul(uint64_t{1} << 32, uint64_t{1} << 32), std::nullopt);
  EXPECT_EQ(checked_mul(kMax, 0), 0u);
  EXPECT_EQ(checked_add(kMax - 1, 1), kMax);
  EXPECT_EQ(checked_add(kMax, 1), std::nullopt);
}

}  // namespace
}  // namespace minisgl
