#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include "utils/error.h"

namespace minisgl {
namespace {

TEST(DTypeNames, RoundTripForEveryType) {
  for (int i = 0; i <= static_cast<int>(DType::kMXFP4); ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(parse_dtype(dtype_name(dtype)), dtype) << dtype_name(dtype);
  }
}

struct NameCase {
  const char* name;
  std::optional<DType> expected;
};

class ParseDType : public testing::TestWithParam<NameCase> {};

TEST_P(ParseDType, TakesTheSpellingsOfTheField) {
  EXPECT_EQ(parse_dtype(GetParam().name), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(Spellings, ParseDType,
                         testing::ValuesIn<NameCase>({
                             {"torch.bfloat16", DType::kBFloat16},
                             {"torch.float32", DType::kFloat32},
                             {"BF16", DType::kBFloat16},
                             {"F32", DType::kFloat32},
                             {"fp16", DType::kFloat16},
                             {"half", DType::kFloat16},
                             {"float", DType::kFloat32},
                             {"Q4_K", DType::kQ4_K},
                             {"", std::nullopt},
                             {"float64", std::nullopt},
                             {"torch.", std::nullopt},
                         }));

struct SizeCase {
  DType dtype;
  int64_t elements;
  int64_t bytes;
};

class BytesOf : public testing::TestWithParam<SizeCase> {};

TEST_P(BytesOf, CountsWholeBlocks) {
  EXPECT_EQ(bytes_of(GetParam().dtype, GetParam().elements), GetParam().bytes);
}

INSTANTIATE_TEST_SUITE_P(Sizes, BytesOf,
                         testing::ValuesIn<SizeCase>({
                             {DType::kFloat32, 3, 12},
                             {DType::kBFloat16, 3, 6},
                             {DType::kInt64, 2, 16},
                             {DType::kBool, 5, 5},
                             {DType::kQ4_0, 64, 36},
                             {DType::kQ4_1, 64, 40},
                             {DType::kQ8_0, 32, 34},
                             {DType::kQ4_K, 512, 288},
                             {DType::kQ6_K, 256, 210},
                             {DType::kMXFP4, 96, 51},
                             {DType::kFloat32, 0, 0},
                         }));

TEST(BytesOfBlocks, RefusesHalfABlock) {
  EXPECT_THROW(bytes_of(DType::kQ4_0, 33), Error);
  EXPECT_THROW(bytes_of(DType::kFloat32, -1), Error);
}

TEST(DTypeKinds, TellBlocksAndFloatsApart) {
  EXPECT_TRUE(is_block_format(DType::kQ4_0));
  EXPECT_FALSE(is_block_format(DType::kInt8));
  EXPECT_TRUE(is_floating(DType::kBFloat16));
  EXPECT_FALSE(is_floating(DType::kInt32));
  EXPECT_FALSE(is_floating(DType::kQ8_0));
}

}  // namespace
}  // namespace minisgl
