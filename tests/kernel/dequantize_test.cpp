#include "kernel/dequantize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "goldens.h"
#include "loader/safetensors.h"
#include "tensor/half.h"
#include "utils/error.h"

namespace minisgl {
namespace {

struct BlockCase {
  const char* type;
  DType dtype;
};
void PrintTo(const BlockCase& block, std::ostream* out) { *out << block.type; }

class DequantizeBlocks : public ::testing::TestWithParam<BlockCase> {};

// The reference blocks: normal data, outliers, zeros, and random bit patterns.
TEST_P(DequantizeBlocks, GivesTheReferenceBitForBit) {
  const auto file = SafetensorsFile::open(testing::test_data_dir() + "/gguf/blocks/" +
                                          GetParam().type + ".safetensors");
  const SafetensorsTensor& raw = *file.find("raw");
  const SafetensorsTensor& values = *file.find("values");
  const int64_t n = values.shape[0] * values.shape[1];
  ASSERT_EQ(bytes_of(GetParam().dtype, n), static_cast<int64_t>(raw.data.size()));
  std::vector<float> got(static_cast<size_t>(n));
  dequantize(got.data(), raw.data.data(), GetParam().dtype, n);
  for (size_t i = 0; i < got.size(); ++i) {
    float expected = 0;
    std::memcpy(&expected, values.data.data() + 4 * i, 4);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(got[i])) << "element " << i << " is " << got[i];
    } else {
      ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(expected))
          << "element " << i << " is " << got[i] << ", expected " << expected;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    AllTypes, DequantizeBlocks,
    ::testing::Values(BlockCase{"F32", DType::kFloat32}, BlockCase{"F16", DType::kFloat16},
                      BlockCase{"BF16", DType::kBFloat16}, BlockCase{"Q4_0", DType::kQ4_0},
                      BlockCase{"Q4_1", DType::kQ4_1}, BlockCase{"Q5_0", DType::kQ5_0},
                      BlockCase{"Q5_1", DType::kQ5_1}, BlockCase{"Q8_0", DType::kQ8_0},
                      BlockCase{"Q2_K", DType::kQ2_K}, BlockCase{"Q3_K", DType::kQ3_K},
                      BlockCase{"Q4_K", DType::kQ4_K}, BlockCase{"Q5_K", DType::kQ5_K},
                      BlockCase{"Q6_K", DType::kQ6_K}, BlockCase{"IQ4_NL", DType::kIQ4_NL},
                      BlockCase{"IQ4_XS", DType::kIQ4_XS}, BlockCase{"MXFP4", DType::kMXFP4}),
    [](const auto& info) { return std::string(info.param.type); });

TEST(DequantizeTest, RefusesTypesThatAreNoWeights) {
  float out = 0;
  const std::byte in[8] = {};
  for (const DType dtype : {DType::kInt32, DType::kInt64, DType::kBool, DType::kFloat8E4M3}) {
    EXPECT_THROW(dequantize(&out, in, dtype, 1), Error) << dtype_name(dtype);
  }
}

TEST(DequantizeTest, RefusesHalfABlock) {
  float out[32];
  const std::byte in[34] = {};
  EXPECT_THROW(dequantize(out, in, DType::kQ8_0, 16), Error);
}

}  // namespace
}  // namespace minisgl
