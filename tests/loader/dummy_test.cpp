#include "loader/dummy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "tensor/half.h"

namespace minisgl {
namespace {

std::vector<float> values_of(const RawMatrix& matrix) {
  std::vector<float> values(static_cast<size_t>(matrix.rows * matrix.cols));
  std::memcpy(values.data(), matrix.data, values.size() * sizeof(float));
  return values;
}

TEST(DummyCheckpointTest, ValuesAreNormalWithDeviationTwoHundredths) {
  DummyCheckpoint dummy(ModelConfig(), DType::kFloat32);
  const std::vector<float> values = values_of(dummy.get("a.weight", 100, 1000));
  double sum = 0, squares = 0;
  for (const float value : values) {
    sum += value;
    squares += static_cast<double>(value) * value;
    ASSERT_LT(std::abs(value), 0.1f);
  }
  const auto n = static_cast<double>(values.size());
  EXPECT_NEAR(sum / n, 0.0, 3e-4);
  EXPECT_NEAR(std::sqrt(squares / n), 0.02, 2e-4);
}

TEST(DummyCheckpointTest, ValuesDependOnNameAndSeedOnly) {
  DummyCheckpoint one(ModelConfig(), DType::kFloat32, 1), same(ModelConfig(), DType::kFloat32, 1);
  DummyCheckpoint other(ModelConfig(), DType::kFloat32, 2);
  const std::vector<float> values = values_of(one.get("a.weight", 4, 8));
  same.get("b.weight", 4, 8);
  EXPECT_EQ(values, values_of(same.get("a.weight", 4, 8)));
  EXPECT_NE(values, values_of(one.get("b.weight", 4, 8)));
  EXPECT_NE(values, values_of(other.get("a.weight", 4, 8)));
  one.release(one.get("a.weight", 4, 8));
  EXPECT_EQ(values, values_of(one.get("a.weight", 4, 8)));
}

TEST(DummyCheckpointTest, NormsAreOnes) {
  DummyCheckpoint dummy(ModelConfig(), DType::kBFloat16);
  for (const char* name : {"model.norm.weight", "x.input_layernorm.weight", "x.q_norm.weight"}) {
    const RawMatrix norm = dummy.get(name, 1, 4);
    uint16_t last = 0;
    std::memcpy(&last, norm.data + 6, 2);
    EXPECT_EQ(bfloat16_to_float(last), 1.0f) << name;
  }
}

TEST(DummyCheckpointTest, HasWhatTheConfigSays) {
  ModelConfig config;
  config.attention_bias = true;
  config.tie_word_embeddings = true;
  const DummyCheckpoint dummy(config, DType::kFloat32);
  EXPECT_TRUE(dummy.has("model.layers.0.self_attn.q_proj.bias"));
  EXPECT_FALSE(dummy.has("model.layers.0.self_attn.o_proj.bias"));
  EXPECT_FALSE(dummy.has("model.layers.0.mlp.up_proj.bias"));
  EXPECT_FALSE(dummy.has("lm_head.weight"));
  EXPECT_TRUE(dummy.has("model.embed_tokens.weight"));
}

}  // namespace
}  // namespace minisgl
