#include "loader/gguf_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "loader/gguf_config.h"
#include "utils/error.h"
#include "utils/gguf_builder.h"

namespace minisgl {
namespace {

using ::testing::ElementsAre;
using testing::GgufBuilder;
using ::testing::HasSubstr;

std::vector<float> counting(size_t n) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = static_cast<float>(i);
  return values;
}

// Hidden size 8, two heads of 4, feed-forward 4, a vocabulary of 4.
GgufBuilder tiny(const std::string& family) {
  GgufBuilder file;
  file.string("general.architecture", family);
  const auto u32 = [&](const char* key, uint32_t value) { file.u32(family + "." + key, value); };
  u32("block_count", 2);
  u32("context_length", 64);
  u32("embedding_length", 8);
  u32("feed_forward_length", 4);
  u32("attention.head_count", 2);
  file.f32(family + ".attention.layer_norm_rms_epsilon", 1e-5f);
  file.floats("token_embd.weight", {8, 4}, counting(32));
  return file;
}

struct Opened {
  std::string content;
  ModelConfig config;
  std::unique_ptr<GgufCheckpoint> checkpoint;
};
Opened open(const GgufBuilder& builder) {
  Opened opened;
  opened.content = builder.build();
  const auto parse = [&] {
    return GgufFile::parse(std::as_bytes(std::span(opened.content)), "x.gguf");
  };
  opened.config = config_from_gguf(parse());
  opened.checkpoint = std::make_unique<GgufCheckpoint>(parse(), opened.config);
  return opened;
}
ModelConfig config_of(const GgufBuilder& builder) {
  const std::string content = builder.build();
  return config_from_gguf(GgufFile::parse(std::as_bytes(std::span(content)), "x.gguf"));
}

std::vector<float> first_column(const RawMatrix& matrix) {
  std::vector<float> values(static_cast<size_t>(matrix.rows));
  for (int64_t r = 0; r < matrix.rows; ++r) {
    std::memcpy(&values[static_cast<size_t>(r)], matrix.row(r), sizeof(float));
  }
  return values;
}
std::vector<float> vector_of(const RawMatrix& matrix) {
  std::vector<float> values(static_cast<size_t>(matrix.cols));
  std::memcpy(values.data(), matrix.data, values.size() * sizeof(float));
  return values;
}

void expect_error(ErrorKind kind, const char* message, const std::function<void()>& action) {
  try {
    action();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(message));
  }
}

TEST(GgufConfigTest, ReadsWhatMetadataAndTensorsSay) {
  GgufBuilder file = tiny("qwen2");
  file.u32("qwen2.attention.head_count_kv", 1).f32("qwen2.rope.freq_base", 1e6f);
  file.u32("qwen2.attention.key_length", 16).u32("qwen2.rope.dimension_count", 8);
  file.floats("output.weight", {8, 4}, counting(32))
      .floats("blk.0.attn_q.bias", {32}, counting(32));
  const ModelConfig config = config_of(file);
  EXPECT_EQ(config.architecture, "Qwen2ForCausalLM");
  EXPECT_EQ(config.model_type, "qwen2");
  EXPECT_EQ(config.num_layers, 2);
  EXPECT_EQ(config.num_kv_heads, 1);
  EXPECT_EQ(config.head_dim, 16);
  EXPECT_EQ(config.vocab_size, 4);
  EXPECT_EQ(config.max_position_embeddings, 64);
  EXPECT_EQ(config.rope.theta, 1e6);
  EXPECT_EQ(config.rope.partial_rotary_factor, 0.5);
  EXPECT_FALSE(config.tie_word_embeddings);
  EXPECT_TRUE(config.attention_bias);
  EXPECT_FALSE(config.attention_out_bias);
}

TEST(GgufConfigTest, WithoutAnOutputTensorTheHeadIsTied) {
  const ModelConfig config = config_of(tiny("llama"));
  EXPECT_TRUE(config.tie_word_embeddings);
  EXPECT_EQ(config.head_dim, 4);
  EXPECT_EQ(config.num_kv_heads, 2);
}

TEST(GgufConfigTest, Llama3ScalingIsATensorOfFactors) {
  GgufBuilder file = tiny("llama");
  const std::vector<float> factors = {1.0f, 8.0f};
  file.floats("rope_freqs.weight", {2}, factors);
  const Opened opened = open(file);
  EXPECT_THAT(opened.config.rope.freq_factors, ElementsAre(1.0f, 8.0f));
  opened.checkpoint->get("model.embed_tokens.weight", 4, 8);
  opened.checkpoint->check_all_used({});

  GgufBuilder too_many = tiny("llama");
  too_many.floats("rope_freqs.weight", {3}, counting(4));
  EXPECT_THROW(config_of(too_many), Error);
  GgufBuilder zero = tiny("llama");
  zero.floats("rope_freqs.weight", {2}, counting(2));
  expect_error(ErrorKind::kBadFile, "rope_freqs.weight", [&] { config_of(zero); });
}

TEST(GgufConfigTest, ReadsRopeScaling) {
  GgufBuilder linear = tiny("llama");
  linear.string("llama.rope.scaling.type", "linear").f32("llama.rope.scaling.factor", 2.0f);
  EXPECT_EQ(config_of(linear).rope.type, RopeConfig::Type::kLinear);
  EXPECT_EQ(config_of(linear).rope.factor, 2.0);
  GgufBuilder none = tiny("llama");
  none.string("llama.rope.scaling.type", "none").f32("llama.rope.scaling.factor", 2.0f);
  EXPECT_EQ(config_of(none).rope.type, RopeConfig::Type::kDefault);
  GgufBuilder yarn = tiny("qwen3");
  yarn.string("qwen3.rope.scaling.type", "yarn").f32("qwen3.rope.scaling.factor", 4.0f);
  yarn.u32("qwen3.rope.scaling.original_context_length", 16);
  yarn.f32("qwen3.rope.scaling.yarn_beta_fast", 24.0f);
  const ModelConfig config = config_of(yarn);
  EXPECT_EQ(config.rope.type, RopeConfig::Type::kYarn);
  EXPECT_EQ(config.rope.original_max_position_embeddings, 16);
  EXPECT_EQ(config.rope.beta_fast, 24.0);
  EXPECT_EQ(config.rope.attention_factor, std::nullopt);
  EXPECT_TRUE(config.rope.truncate);
  GgufBuilder longrope = tiny("phi3");
  longrope.string("phi3.rope.scaling.type", "longrope");
  expect_error(ErrorKind::kUnsupported, "'longrope'", [&] { config_of(longrope); });
}

TEST(GgufConfigTest, WindowsFollowTheFamily) {
  GgufBuilder gpt_oss = tiny("gpt-oss");
  gpt_oss.u32("gpt-oss.attention.sliding_window", 16);
  EXPECT_EQ(config_of(gpt_oss).layer_window(0), 16);
  EXPECT_EQ(config_of(gpt_oss).layer_window(1), 0);
  GgufBuilder pattern = tiny("gemma3");
  pattern.u32("gemma3.attention.sliding_window", 16);
  pattern.array("gemma3.attention.sliding_window_pattern", GgufType::kBool, 2,
                std::string("\0\1", 2));
  EXPECT_EQ(config_of(pattern).layer_window(0), 0);
  EXPECT_EQ(config_of(pattern).layer_window(1), 16);
}

TEST(GgufConfigTest, AllEosIdsAreTakenOnce) {
  GgufBuilder file = tiny("llama");
  file.u32("tokenizer.ggml.eos_token_id", 2).u32("tokenizer.ggml.eot_token_id", 3);
  file.u32("tokenizer.ggml.eom_token_id", 2).f32("general.sampling.temp", 0.5f);
  const std::string content = file.build();
  const GenerationConfig generation =
      generation_from_gguf(GgufFile::parse(std::as_bytes(std::span(content)), "x.gguf"));
  EXPECT_THAT(generation.eos_token_ids, ElementsAre(2, 3));
  EXPECT_EQ(generation.temperature, 0.5);
}

struct BadCase {
  const char* name;
  std::function<void(GgufBuilder&)> damage;
  const char* message;
  ErrorKind kind = ErrorKind::kBadFile;
};
void PrintTo(const BadCase& bad, std::ostream* out) { *out << bad.name; }

class GgufConfigBad : public ::testing::TestWithParam<BadCase> {};

TEST_P(GgufConfigBad, IsRefusedWithAReason) {
  GgufBuilder file;  // llama without the four values that the cases give
  file.string("general.architecture", "llama").u32("llama.context_length", 64);
  file.f32("llama.attention.layer_norm_rms_epsilon", 1e-5f).u32("llama.feed_forward_length", 4);
  GetParam().damage(file);
  expect_error(GetParam().kind, GetParam().message, [&] { config_of(file); });
}

void put_sizes(GgufBuilder& file, uint32_t layers, uint32_t hidden, uint32_t heads) {
  file.u32("llama.block_count", layers).u32("llama.embedding_length", hidden);
  file.u32("llama.attention.head_count", heads);
}

INSTANTIATE_TEST_SUITE_P(
    Values, GgufConfigBad,
    ::testing::ValuesIn(std::vector<BadCase>{
        {"NoBlockCount", [](GgufBuilder&) {}, "llama.block_count is missing"},
        {"ZeroBlocks", [](GgufBuilder& f) { put_sizes(f, 0, 8, 2); }, "llama.block_count is 0"},
        {"HugeBlocks", [](GgufBuilder& f) { put_sizes(f, 1u << 31, 8, 2); },
         "llama.block_count is 2147483648"},
        {"ZeroHeads", [](GgufBuilder& f) { put_sizes(f, 1, 8, 0); }, "head_count is 0"},
        {"UnevenHeads", [](GgufBuilder& f) { put_sizes(f, 1, 8, 3); }, "no multiple of 3 heads"},
        {"HugeWidth", [](GgufBuilder& f) { put_sizes(f, 1, 1u << 31, 2); }, "embedding_length"},
        {"NoEmbedding", [](GgufBuilder& f) { put_sizes(f, 1, 8, 2); }, "'token_embd.weight'"},
        {"TextAsNumber", [](GgufBuilder& f) { f.string("llama.block_count", "2"); },
         "of type string"},
        {"LayersDiffer",
         [](GgufBuilder& f) {
           f.u32("llama.block_count", 2).u32("llama.embedding_length", 8);
           f.array("llama.attention.head_count", GgufType::kUInt32, 2,
                   GgufBuilder::raw(2u) + GgufBuilder::raw(4u));
         },
         "differs between layers", ErrorKind::kUnsupported},
        {"Softcapping", [](GgufBuilder& f) { f.f32("llama.attn_logit_softcapping", 50); },
         "attn_logit_softcapping is not supported", ErrorKind::kUnsupported},
    }),
    [](const auto& info) { return std::string(info.param.name); });

TEST(GgufConfigTest, AnUnknownFamilyIsRefusedWithTheKnownOnes) {
  GgufBuilder file;
  file.string("general.architecture", "mamba");
  expect_error(ErrorKind::kUnsupported, "'mamba' is not supported; known are llama, qwen2",
               [&] { config_of(file); });
  expect_error(ErrorKind::kBadFile, "general.architecture is missing",
               [&] { config_of(GgufBuilder()); });
}

TEST(GgufCheckpointTest, InterleavedRowsOfLlamaComeBackInOrder) {
  // Stored rows of a head of 4: 0, 2, 1, 3 of Hugging Face's.
  GgufBuilder file = tiny("llama");
  std::vector<float> rows;
  for (const float row : {0, 2, 1, 3, 4, 6, 5, 7}) {
    for (int i = 0; i < 8; ++i) rows.push_back(row);
  }
  file.floats("blk.0.attn_q.weight", {8, 8}, rows).floats("blk.0.attn_v.weight", {8, 8}, rows);
  file.floats("blk.0.attn_k.bias", {8}, std::vector<float>{0, 2, 1, 3, 4, 6, 5, 7});
  const Opened opened = open(file);
  EXPECT_THAT(first_column(opened.checkpoint->get("model.layers.0.self_attn.q_proj.weight", 8, 8)),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(vector_of(opened.checkpoint->get("model.layers.0.self_attn.k_proj.bias", 1, 8)),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(first_column(opened.checkpoint->get("model.layers.0.self_attn.v_proj.weight", 8, 8)),
              ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
}

TEST(GgufCheckpointTest, OtherFamiliesKeepTheirRows) {
  GgufBuilder file = tiny("qwen3");
  file.floats("blk.0.attn_q.weight", {8, 8}, counting(64));
  EXPECT_EQ(open(file)
                .checkpoint->get("model.layers.0.self_attn.q_proj.weight", 8, 8)
                .interleaved_head_dim,
            0);
}

TEST(GgufCheckpointTest, GemmasNormsLoseTheOneThatTheyHold) {
  GgufBuilder file = tiny("gemma3");
  file.floats("output_norm.weight", {8}, counting(8));
  file.floats("blk.1.post_attention_norm.weight", {8}, counting(8));
  file.floats("blk.1.ffn_norm.weight", {8}, counting(8));
  const Opened opened = open(file);
  EXPECT_THAT(vector_of(opened.checkpoint->get("model.norm.weight", 1, 8)),
              ElementsAre(-1, 0, 1, 2, 3, 4, 5, 6));
  const std::string layer = "model.layers.1.";
  EXPECT_TRUE(opened.checkpoint->has(layer + "post_attention_layernorm.weight"));
  EXPECT_TRUE(opened.checkpoint->has(layer + "pre_feedforward_layernorm.weight"));
  EXPECT_FALSE(opened.checkpoint->has(layer + "post_feedforward_layernorm.weight"));
}

TEST(GgufCheckpointTest, StackedExpertsAnswerOneByOne) {
  GgufBuilder file = tiny("qwen3moe");
  file.u32("qwen3moe.expert_count", 3).u32("qwen3moe.expert_used_count", 2);
  file.floats("blk.0.ffn_up_exps.weight", {8, 4, 3}, counting(96));
  file.floats("blk.0.ffn_gate_inp.weight", {8, 3}, counting(24));
  const Opened opened = open(file);
  EXPECT_EQ(opened.config.num_experts, 3);
  EXPECT_TRUE(opened.config.norm_topk_prob);
  const std::string mlp = "model.layers.0.mlp.";
  EXPECT_EQ(first_column(opened.checkpoint->get(mlp + "experts.2.up_proj.weight", 4, 8))[0], 64);
  EXPECT_EQ(opened.checkpoint->get(mlp + "gate.weight", 3, 8).rows, 3);
  expect_error(ErrorKind::kBadFile, "'blk.0.ffn_up_exps.weight' has the shape [3, 4, 8]",
               [&] { opened.checkpoint->get(mlp + "experts.3.up_proj.weight", 4, 8); });
  EXPECT_FALSE(opened.checkpoint->has(mlp + "experts.0.down_proj.weight"));
}

TEST(GgufCheckpointTest, FusedTensorsOfPhiAnswerForTheirParts) {
  GgufBuilder file = tiny("phi3");
  file.floats("blk.0.attn_qkv.weight", {8, 24}, counting(192));
  file.floats("blk.0.ffn_up.weight", {8, 8}, counting(64));
  const Opened opened = open(file);
  const std::string layer = "model.layers.0.";
  const auto first = [&](const std::string& name, int64_t rows) {
    return first_column(opened.checkpoint->get(layer + name, rows, 8))[0];
  };
  EXPECT_EQ(first("self_attn.q_proj.weight", 8), 0);
  EXPECT_EQ(first("self_attn.k_proj.weight", 8), 64);
  EXPECT_EQ(first("self_attn.v_proj.weight", 8), 128);
  EXPECT_EQ(first("mlp.gate_up_proj.weight", 8), 0);
}

TEST(GgufCheckpointTest, ErrorsNameFileTensorExpectedAndFound) {
  GgufBuilder file = tiny("llama");
  file.tensor("blk.0.ffn_down.weight", {256, 8}, 16, std::string(8 * 66, '\0'));  // IQ2_XXS
  const Opened opened = open(file);
  Checkpoint& weights = *opened.checkpoint;
  expect_error(ErrorKind::kBadFile,
               "x.gguf: tensor 'token_embd.weight' has the shape [4, 8], expected 5 x 8",
               [&] { weights.get("model.embed_tokens.weight", 5, 8); });
  expect_error(ErrorKind::kBadFile, "x.gguf: tensor 'blk.0.attn_q.weight'",
               [&] { weights.get("model.layers.0.self_attn.q_proj.weight", 8, 8); });
  expect_error(ErrorKind::kUnsupported, "'blk.0.ffn_down.weight' is of type IQ2_XXS, expected one",
               [&] { weights.get("model.layers.0.mlp.down_proj.weight", 8, 256); });
  expect_error(ErrorKind::kBadFile, "'token_embd.weight'",
               [&] { weights.check_all_used({"blk."}); });
}

}  // namespace
}  // namespace minisgl
