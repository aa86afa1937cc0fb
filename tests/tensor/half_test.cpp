#include "tensor/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace minisgl {
namespace {

// What a half is by definition: (-1)^s * 2^(e - 15) * (1 + m / 1024), subnormal below e = 1.
double half_by_definition(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

TEST(HalfTest, EveryHalfBecomesItsValueAndComesBack) {
  for (uint32_t i = 0; i < 0x10000; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    const float value = half_to_float(bits);
    if ((bits & 0x7fff) > 0x7c00) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      EXPECT_GT(float_to_half(value) & 0x7fff, 0x7c00) << bits;
      continue;
    }
    if ((bits & 0x7fff) == 0x7c00) {
      EXPECT_TRUE(std::isinf(value)) << bits;
    } else {
      ASSERT_EQ(static_cast<double>(value), half_by_definition(bits)) << bits;
    }
    EXPECT_EQ(std::signbit(value), bits >= 0x8000) << bits;
    ASSERT_EQ(float_to_half(value), bits);
  }
}

TEST(HalfTest, BetweenTwoHalvesTheNearerOrTheEvenOneIsTaken) {
  for (uint16_t bits = 0; bits < 0x7bff; ++bits) {
    const float low = half_to_float(bits);
    const float high = half_to_float(bits + 1);
    const float middle = (low + high) / 2;  // exact
    const uint16_t even = bits % 2 == 0 ? bits : static_cast<uint16_t>(bits + 1);
    ASSERT_EQ(float_to_half(middle), even) << bits;
    ASSERT_EQ(float_to_half(std::nextafter(middle, low)), bits);
    ASSERT_EQ(float_to_half(std::nextafter(middle, high)), bits + 1);
    ASSERT_EQ(float_to_half(-middle), even | 0x8000);
  }
}

TEST(HalfTest, TooLargeBecomesInfinity) {
  EXPECT_EQ(float_to_half(65519.0f), 0x7bff);
  EXPECT_EQ(float_to_half(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_half(1e30f), 0x7c00);
  EXPECT_EQ(float_to_half(-std::numeric_limits<float>::infinity()), 0xfc00);
}

TEST(BFloat16Test, EveryBFloat16ComesBack) {
  for (uint32_t i = 0; i < 0x10000; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    const float value = bfloat16_to_float(bits);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(bfloat16_to_float(float_to_bfloat16(value)))) << bits;
    } else {
      ASSERT_EQ(float_to_bfloat16(value), bits);
    }
  }
}

TEST(BFloat16Test, RoundsToNearestEven) {
  EXPECT_EQ(float_to_bfloat16(std::bit_cast<float>(0x3f808000u)), 0x3f80);  // tie, even stays
  EXPECT_EQ(float_to_bfloat16(std::bit_cast<float>(0x3f818000u)), 0x3f82);  // tie, odd goes up
  EXPECT_EQ(float_to_bfloat16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(float_to_bfloat16(std::bit_cast<float>(0x3f807fffu)), 0x3f80);
  EXPECT_EQ(float_to_bfloat16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_TRUE(std::isnan(bfloat16_to_float(float_to_bfloat16(std::bit_cast<float>(0x7f800001u)))));
}

}  // namespace
}  // namespace minisgl
