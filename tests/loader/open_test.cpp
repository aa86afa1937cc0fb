#include "loader/open.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "goldens.h"
#include "loader/safetensors_builder.h"
#include "utils/error.h"
#include "utils/files.h"
#include "utils/gguf_builder.h"

namespace minisgl {
namespace {

using ::testing::ElementsAre;
using testing::GgufBuilder;
using ::testing::HasSubstr;
using testing::SafetensorsBuilder;

// Asks for every tensor of a Llama-like decoder, as the layers do.
void read_decoder(Checkpoint& checkpoint, const ModelConfig& config) {
  const Weights root(checkpoint);
  const int64_t hidden = config.hidden_size;
  const int64_t q = config.num_qo_heads * config.head_dim;
  const int64_t kv = config.num_kv_heads * config.head_dim;
  const auto linear = [](const Weights& w, int64_t rows, int64_t cols) {
    const RawMatrix matrix = w.matrix("weight", rows, cols);
    ASSERT_NE(matrix.row(rows - 1), nullptr);
    w.release(matrix);
  };
  linear(root / "model" / "embed_tokens", config.vocab_size, hidden);
  (root / "model" / "norm").vector("weight", hidden);
  if (!config.tie_word_embeddings) linear(root / "lm_head", config.vocab_size, hidden);
  for (int64_t i = 0; i < config.num_layers; ++i) {
    const Weights layer = root / "model" / "layers" / i;
    (layer / "input_layernorm").vector("weight", hidden);
    (layer / "post_attention_layernorm").vector("weight", hidden);
    const Weights attention = layer / "self_attn";
    linear(attention / "q_proj", q, hidden);
    linear(attention / "k_proj", kv, hidden);
    linear(attention / "v_proj", kv, hidden);
    linear(attention / "o_proj", hidden, q);
    if (config.attention_bias) {
      (attention / "q_proj").vector("bias", q);
      (attention / "k_proj").vector("bias", kv);
      (attention / "v_proj").vector("bias", kv);
    }
    if (attention.has("q_norm.weight")) {
      (attention / "q_norm").vector("weight", config.head_dim);
      (attention / "k_norm").vector("weight", config.head_dim);
    }
    const Weights mlp = layer / "mlp";
    const bool moe = config.layer_is_moe(i);
    const int64_t inner = moe ? config.moe_intermediate_size : config.intermediate_size;
    if (moe) linear(mlp / "gate", config.num_experts, hidden);
    for (int64_t e = 0; e < (moe ? config.num_experts : 1); ++e) {
      const Weights expert = moe ? mlp / "experts" / e : mlp;
      linear(expert / "gate_proj", inner, hidden);
      linear(expert / "up_proj", inner, hidden);
      linear(expert / "down_proj", hidden, inner);
    }
  }
}

std::vector<std::string> folders_in(const std::string& dir) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) names.push_back(entry.path());
  return names;
}

bool is_plain_decoder(const ModelConfig& config) {
  for (const char* name :
       {"LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM",
        "Qwen3MoeForCausalLM", "Phi3ForCausalLM", "GraniteForCausalLM", "SmolLM3ForCausalLM"}) {
    if (config.architecture == name) return true;
  }
  return false;
}

void expect_all_read(const std::string& path) {
  SCOPED_TRACE(path);
  OpenedModel model = open_model(path);
  if (!is_plain_decoder(model.config)) return;
  read_decoder(*model.checkpoint, model.config);
  model.checkpoint->check_all_used({});
  EXPECT_THAT(model.generation.eos_token_ids, ElementsAre(2));
}

TEST(OpenModelTest, EveryCommittedModelIsReadToTheLastTensor) {
  int count = 0;
  for (const char* kind : {"/models", "/gguf/models"}) {
    for (const std::string& path : folders_in(testing::test_data_dir() + kind)) {
      expect_all_read(path);
      ++count;
    }
  }
  EXPECT_EQ(count, 13);
}

TEST(OpenModelTest, EveryReferenceModelIsReadToTheLastTensor) {
  if (!testing::goldens_dir()) GTEST_SKIP() << "the full reference data is not here";
  for (const std::string& path : folders_in(*testing::goldens_dir() + "/gguf/models")) {
    expect_all_read(path);
  }
  for (const std::string& path : folders_in(*testing::goldens_dir() + "/models")) {
    if (path.find("qwen3_next") != path.npos || path.find("qwen3_5") != path.npos ||
        path.find("deepseek") != path.npos) {
      continue;
    }
    expect_all_read(path);
  }
}

TEST(OpenModelTest, SaysWhatAHuggingFaceFolderHolds) {
  const OpenedModel model = open_model(testing::test_data_dir() + "/models/qwen2");
  EXPECT_EQ(model.format, "safetensors");
  EXPECT_EQ(model.config.architecture, "Qwen2ForCausalLM");
  EXPECT_EQ(model.config.head_dim, 16);
  EXPECT_EQ(model.config.num_kv_heads, 2);
  EXPECT_TRUE(model.config.attention_bias);
  EXPECT_FALSE(model.config.attention_out_bias);
  EXPECT_TRUE(model.config.tie_word_embeddings);
  EXPECT_EQ(model.config.dtype, DType::kFloat32);
  EXPECT_EQ(model.config.sliding_window, 0);
  EXPECT_EQ(model.tokenizer_path, testing::test_data_dir() + "/models/qwen2");
}

TEST(OpenModelTest, SaysWhatAGgufHolds) {
  const std::string folder = testing::test_data_dir() + "/gguf/models/llama-q4_1";
  const OpenedModel model = open_model(folder);
  EXPECT_EQ(model.format, "gguf");
  EXPECT_EQ(model.config.architecture, "LlamaForCausalLM");
  EXPECT_EQ(model.config.num_layers, 2);
  EXPECT_EQ(model.config.head_dim, 64);
  EXPECT_EQ(model.config.vocab_size, 512);
  EXPECT_NEAR(model.config.rms_norm_eps, 1e-5, 1e-12);
  EXPECT_TRUE(model.config.tie_word_embeddings);
  EXPECT_EQ(model.config.dtype, DType::kFloat32);
  EXPECT_EQ(model.tokenizer_path, folder + "/llama-q4_1.gguf");
  const RawMatrix q = model.checkpoint->get("model.layers.0.self_attn.q_proj.weight", 256, 256);
  EXPECT_EQ(q.dtype, DType::kQ4_1);
  EXPECT_EQ(q.interleaved_head_dim, 64);
}

TEST(OpenModelTest, ASplitGgufIsOpenedByItsFolder) {
  const OpenedModel model = open_model(testing::test_data_dir() + "/gguf/models/qwen3-q8_0-split");
  EXPECT_FALSE(model.config.tie_word_embeddings);
  EXPECT_THAT(model.tokenizer_path, HasSubstr("-00001-of-00003.gguf"));
}

class OpenModelFolder : public ::testing::Test {
 protected:
  OpenModelFolder() : dir_(::testing::TempDir() + "open_" + std::to_string(::getpid())) {
    std::filesystem::remove_all(dir_);
    std::filesystem::create_directories(dir_);
  }
  ~OpenModelFolder() override { std::filesystem::remove_all(dir_); }

  void put(const std::string& name, const std::string& content) const {
    write_file(dir_ + "/" + name, content);
  }
  void put_config() const {
    put("config.json", R"({"architectures":["LlamaForCausalLM"],"model_type":"llama",
      "hidden_size":4,"intermediate_size":8,"num_hidden_layers":1,"num_attention_heads":2,
      "vocab_size":6})");
  }
  void expect_error(ErrorKind kind, const std::vector<std::string>& parts,
                    const std::function<void()>& action) const {
    try {
      action();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.what();
      for (const std::string& part : parts) EXPECT_THAT(error.what(), HasSubstr(part));
    }
  }
  void expect_open_error(ErrorKind kind, const std::vector<std::string>& parts,
                         const std::string& path = "") const {
    expect_error(kind, parts, [&] { open_model(path.empty() ? dir_ : path); });
  }
  std::string dir_;
};

const std::vector<float> kFloats(64, 1.0f);
std::span<const float> floats(size_t n) { return std::span(kFloats).first(n); }

TEST_F(OpenModelFolder, SaysWhatIsMissing) {
  expect_open_error(ErrorKind::kNotFound, {"no such file"}, dir_ + "/nothing");
  expect_open_error(ErrorKind::kNotFound, {"no config.json and no .gguf"});
  put_config();
  expect_open_error(ErrorKind::kNotFound, {"no weights, expected model.safetensors"});
  put("pytorch_model.bin", "x");
  expect_open_error(ErrorKind::kUnsupported, {"pytorch_model.bin", "convert them to safetensors"});
  expect_open_error(ErrorKind::kUnsupported, {"convert it to safetensors"},
                    dir_ + "/pytorch_model.bin");
}

TEST_F(OpenModelFolder, RefusesFilesThatAreNoModels) {
  put("a.txt", "hello world");
  expect_open_error(ErrorKind::kBadFile, {"a.txt: is not a GGUF file"}, dir_ + "/a.txt");
  put("model.safetensors", SafetensorsBuilder().floats("a", {1}, floats(1)).build());
  expect_open_error(ErrorKind::kInvalidArgument, {"name the folder"}, dir_ + "/model.safetensors");
  put_config();
  put("model.safetensors", "");
  expect_open_error(ErrorKind::kBadFile, {"model.safetensors", "too few"});
  put("config.json", "{");
  expect_open_error(ErrorKind::kBadFile, {"config.json", "not valid JSON"});
}

TEST_F(OpenModelFolder, AsksForOneOfSeveralModels) {
  GgufBuilder gguf;
  put("a.gguf", gguf.build());
  put("b.gguf", gguf.build());
  expect_open_error(ErrorKind::kInvalidArgument, {"a.gguf, b.gguf", "name one"});
  put_config();
  std::filesystem::remove(dir_ + "/a.gguf");
  std::filesystem::remove(dir_ + "/b.gguf");
  put("a.safetensors", SafetensorsBuilder().floats("a", {1}, floats(1)).build());
  put("b.safetensors", SafetensorsBuilder().floats("b", {1}, floats(1)).build());
  expect_open_error(ErrorKind::kNotFound, {"model.safetensors.index.json"});
}

TEST_F(OpenModelFolder, ErrorsOfWeightsNameFileTensorExpectedAndFound) {
  put_config();
  SafetensorsBuilder file;
  file.floats("model.norm.weight", {5}, floats(5)).add("counts", "I32", {4}, "0123456789abcdef");
  put("model.safetensors", file.build());
  const OpenedModel model = open_model(dir_);
  Checkpoint& weights = *model.checkpoint;
  const std::string path = dir_ + "/model.safetensors";
  expect_error(ErrorKind::kBadFile, {path, "'model.norm.weight'", "[5]", "1 x 4"},
               [&] { weights.get("model.norm.weight", 1, 4); });
  expect_error(ErrorKind::kBadFile, {path, "'lm_head.weight'", "[6, 4]", "missing"},
               [&] { weights.get("lm_head.weight", 6, 4); });
  expect_error(ErrorKind::kUnsupported, {path, "'counts'", "I32", "expected F32, F16 or BF16"},
               [&] { weights.get("counts", 1, 4); });
  EXPECT_EQ(weights.get("model.norm.weight", 1, 5).cols, 5);
  weights.check_all_used({"counts"});
}

TEST_F(OpenModelFolder, SurplusTensorsAreListed) {
  put_config();
  SafetensorsBuilder file;
  file.floats("a.weight", {1}, floats(1)).floats("extra.weight", {1}, floats(1));
  put("model.safetensors", file.build());
  OpenedModel model = open_model(dir_);
  model.checkpoint->get("a.weight", 1, 1);
  expect_error(ErrorKind::kBadFile, {"model.safetensors", "1 tensors", "'extra.weight'"},
               [&] { model.checkpoint->check_all_used({}); });
  model.checkpoint->check_all_used({"extra."});
  model.checkpoint->check_all_used({"tra.weight"});
}

TEST_F(OpenModelFolder, AnIndexIsHeldToItsShards) {
  put_config();
  const std::string index = "model.safetensors.index.json";
  put("s1.safetensors", SafetensorsBuilder().floats("a", {1}, floats(1)).build());
  put(index, R"({"weight_map":{"a":"s1.safetensors","b":"s2.safetensors"}})");
  expect_open_error(ErrorKind::kNotFound, {"s2.safetensors: the shard is missing", index});
  put("s2.safetensors", SafetensorsBuilder().floats("c", {1}, floats(1)).build());
  expect_open_error(ErrorKind::kBadFile, {"s2.safetensors: tensor 'b' is not there"});
  put("s2.safetensors",
      SafetensorsBuilder().floats("a", {1}, floats(1)).floats("b", {1}, floats(1)).build());
  expect_open_error(ErrorKind::kBadFile, {"tensor 'a' is in", "expected in one shard"});
  put("s2.safetensors", SafetensorsBuilder().floats("b", {1}, floats(1)).build());
  EXPECT_EQ(open_model(dir_).checkpoint->total_bytes(), 8);

  for (const char* bad : {"{}", R"({"weight_map":{}})", R"({"weight_map":{"a":1}})", "[]",
                          R"({"weight_map":{"a":"../s1.safetensors"}})",
                          R"({"weight_map":{"a":"s1.safetensors","a":"s2.safetensors"}})",
                          R"({"weight_map":{"a":".."}})", R"({"weight_map":{"a":""}})"}) {
    put(index, bad);
    expect_open_error(ErrorKind::kBadFile, {index});
  }
}

TEST_F(OpenModelFolder, UnalignedTensorsAreCopiedToAnAlignedPlace) {
  put_config();
  SafetensorsBuilder file;
  file.add("odd", "U8", {1}, "x").floats("a.weight", {2}, floats(2));
  put("model.safetensors", file.build());
  OpenedModel model = open_model(dir_);
  const RawMatrix a = model.checkpoint->get("a.weight", 1, 2);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data) % 4, 0u);
  EXPECT_EQ(std::memcmp(a.data, kFloats.data(), 8), 0);
  model.checkpoint->release(a);
}

TEST_F(OpenModelFolder, FusedAndStackedTensorsAnswerForTheirParts) {
  put_config();  // 2 heads of 2, all with their own key and value
  std::vector<float> values(96);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  SafetensorsBuilder file;
  file.floats("l.qkv_proj.weight", {12, 4}, std::span(values).first(48));
  file.floats("l.qkv_proj.bias", {12}, std::span(values).first(12));
  file.floats("l.gate_up_proj.weight", {6, 4}, std::span(values).first(24));
  file.floats("m.experts.gate_up_proj", {2, 6, 4}, std::span(values).first(48));
  file.floats("m.experts.down_proj", {2, 4, 3}, std::span(values).first(24));
  put("model.safetensors", file.build());
  OpenedModel model = open_model(dir_);
  const auto first = [&](const char* name, int64_t rows, int64_t cols) {
    float value = 0;
    std::memcpy(&value, model.checkpoint->get(name, rows, cols).data, 4);
    return value;
  };
  EXPECT_EQ(first("l.q_proj.weight", 4, 4), 0);
  EXPECT_EQ(first("l.k_proj.weight", 4, 4), 16);
  EXPECT_EQ(first("l.v_proj.weight", 4, 4), 32);
  EXPECT_EQ(first("l.v_proj.bias", 1, 4), 8);
  EXPECT_EQ(first("l.up_proj.weight", 3, 4), 12);
  EXPECT_EQ(first("m.experts.1.gate_proj.weight", 3, 4), 24);
  EXPECT_EQ(first("m.experts.1.up_proj.weight", 3, 4), 36);
  EXPECT_EQ(first("m.experts.1.down_proj.weight", 4, 3), 12);
  EXPECT_TRUE(model.checkpoint->has("m.experts.0.down_proj.weight"));
  EXPECT_FALSE(model.checkpoint->has("l.o_proj.weight"));
  model.checkpoint->check_all_used({});
  expect_error(ErrorKind::kBadFile, {"'l.qkv_proj.weight'", "[12, 4]", "5 x 4"},
               [&] { model.checkpoint->get("l.q_proj.weight", 5, 4); });
  expect_error(ErrorKind::kBadFile, {"'m.experts.down_proj'", "[2, 4, 3]"},
               [&] { model.checkpoint->get("m.experts.2.down_proj.weight", 4, 3); });
  expect_error(ErrorKind::kBadFile, {"[2, 6, 4]"},
               [&] { model.checkpoint->get("m.experts.0.up_proj.weight", 2, 4); });
}

TEST_F(OpenModelFolder, WithoutADtypeInTheConfigTheWeightsTellIt) {
  put_config();
  put("model.safetensors", SafetensorsBuilder().add("a", "F16", {1}, "ab").build());
  EXPECT_EQ(open_model(dir_).config.dtype, DType::kFloat16);
}

TEST_F(OpenModelFolder, EosIdsComeFromGenerationConfigOrElseFromConfig) {
  const char* config = R"({"architectures":["LlamaForCausalLM"],"model_type":"llama",
    "hidden_size":4,"intermediate_size":8,"num_hidden_layers":1,"num_attention_heads":2,
    "vocab_size":6,"eos_token_id":[1,3]})";
  put("config.json", config);
  EXPECT_THAT(open_model(dir_, {.dummy_weight = true}).generation.eos_token_ids, ElementsAre(1, 3));
  put("generation_config.json", R"({"eos_token_id":5,"temperature":0.6,"top_k":null})");
  const OpenedModel model = open_model(dir_, {.dummy_weight = true});
  EXPECT_THAT(model.generation.eos_token_ids, ElementsAre(5));
  EXPECT_EQ(model.generation.temperature, 0.6);
  EXPECT_EQ(model.generation.top_k, std::nullopt);
  put("generation_config.json", R"({"eos_token_id":6})");
  expect_error(ErrorKind::kBadFile, {"id 6 is not in the vocabulary of 6"},
               [&] { open_model(dir_, {.dummy_weight = true}); });
}

TEST_F(OpenModelFolder, DummyWeightsNeedTheConfigOnly) {
  put_config();
  for (const std::string& path : {dir_, dir_ + "/config.json"}) {
    OpenedModel model = open_model(path, {.dummy_weight = true});
    EXPECT_EQ(model.format, "dummy");
    read_decoder(*model.checkpoint, model.config);
    model.checkpoint->check_all_used({});
  }
}

}  // namespace
}  // namespace minisgl
