#include "loader/hf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "loader/generation_config.h"
#include "utils/error.h"

namespace minisgl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A small config of `model_type`, changed by the JSON object `changes` (null takes a key away).
Json config_json(const std::string& model_type, const std::string& changes = "{}") {
  Json json = {{"model_type", model_type}, {"hidden_size", 64},
               {"intermediate_size", 128}, {"num_hidden_layers", 4},
               {"num_attention_heads", 4}, {"num_key_value_heads", 2},
               {"vocab_size", 512},        {"max_position_embeddings", 256}};
  const Json patch = parse_json(changes, "test");
  for (const auto& [key, value] : patch.items()) json[key] = value;
  return json;
}

ModelConfig parsed(const std::string& model_type, const std::string& changes = "{}") {
  return parse_hf_config(config_json(model_type, changes), "config.json");
}

TEST(HfConfigTest, ReadsThePlainValues) {
  const ModelConfig config = parsed("llama", R"({"rms_norm_eps":1e-5,"head_dim":32,
      "hidden_act":"gelu","tie_word_embeddings":true,"dtype":"float16","mlp_bias":true})");
  EXPECT_EQ(config.architecture, "LlamaForCausalLM");
  EXPECT_EQ(config.num_layers, 4);
  EXPECT_EQ(config.num_qo_heads, 4);
  EXPECT_EQ(config.num_kv_heads, 2);
  EXPECT_EQ(config.head_dim, 32);
  EXPECT_EQ(config.rms_norm_eps, 1e-5);
  EXPECT_EQ(config.hidden_act, "gelu");
  EXPECT_TRUE(config.tie_word_embeddings);
  EXPECT_TRUE(config.mlp_bias);
  EXPECT_EQ(config.dtype, DType::kFloat16);
  EXPECT_EQ(config.rope.type, RopeConfig::Type::kDefault);
  EXPECT_EQ(config.rope.theta, 10000.0);
}

TEST(HfConfigTest, FillsInWhatTransformersAssumes) {
  EXPECT_EQ(parsed("llama").head_dim, 16);
  EXPECT_EQ(parsed("qwen3").head_dim, 128);
  EXPECT_EQ(parsed("qwen3", R"({"head_dim":null})").head_dim, 16);
  EXPECT_EQ(parsed("llama", R"({"num_key_value_heads":null})").num_kv_heads, 4);
  EXPECT_EQ(parsed("llama").rms_norm_eps, 1e-6);
  EXPECT_EQ(parsed("phi3").rms_norm_eps, 1e-5);
  EXPECT_FALSE(parsed("llama").tie_word_embeddings);
  EXPECT_TRUE(parsed("gemma2").tie_word_embeddings);
  Json mistral = config_json("mistral", R"({"num_attention_heads":32})");
  mistral.erase("num_key_value_heads");
  EXPECT_EQ(parse_hf_config(mistral, "config.json").num_kv_heads, 8);
}

TEST(HfConfigTest, BiasesFollowTheModelType) {
  const char* kBias = R"({"attention_bias":true})";
  EXPECT_FALSE(parsed("llama").attention_bias);
  EXPECT_TRUE(parsed("llama", kBias).attention_bias);
  EXPECT_TRUE(parsed("llama", kBias).attention_out_bias);
  EXPECT_TRUE(parsed("qwen2").attention_bias);
  EXPECT_FALSE(parsed("qwen2").attention_out_bias);
  EXPECT_TRUE(parsed("qwen3", kBias).attention_out_bias);
  EXPECT_FALSE(parsed("mistral", kBias).attention_bias);
}

TEST(HfConfigTest, BothStylesOfRopeGiveTheSame) {
  const ModelConfig old_style = parsed("llama", R"({"rope_theta":500000.0,"rope_scaling":{
      "rope_type":"llama3","factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,
      "original_max_position_embeddings":64}})");
  const ModelConfig new_style = parsed("llama", R"({"rope_parameters":{"rope_theta":500000.0,
      "rope_type":"llama3","factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,
      "original_max_position_embeddings":64}})");
  for (const ModelConfig& config : {old_style, new_style}) {
    EXPECT_EQ(config.rope.type, RopeConfig::Type::kLlama3);
    EXPECT_EQ(config.rope.theta, 500000.0);
    EXPECT_EQ(config.rope.factor, 8.0);
    EXPECT_EQ(config.rope.original_max_position_embeddings, 64);
  }
  EXPECT_EQ(parsed("llama", R"({"rope_scaling":null,"rope_theta":5e5})").rope.theta, 5e5);
  const ModelConfig linear = parsed("llama", R"({"rope_scaling":{"type":"linear","factor":2}})");
  EXPECT_EQ(linear.rope.type, RopeConfig::Type::kLinear);
  EXPECT_EQ(linear.rope.factor, 2.0);
  const ModelConfig nested = parsed("gemma3_text", R"({"rope_parameters":{
      "full_attention":{"rope_theta":1e6,"rope_type":"default"},
      "sliding_attention":{"rope_theta":1e4,"rope_type":"default"}}})");
  EXPECT_EQ(nested.rope.theta, 1e6);
}

TEST(HfConfigTest, ReadsYarn) {
  const ModelConfig config = parsed("qwen3", R"({"rope_scaling":{"rope_type":"yarn","factor":4.0,
      "original_max_position_embeddings":64,"attention_factor":1.5,"beta_fast":16,
      "truncate":false,"mscale":0.7}})");
  EXPECT_EQ(config.rope.type, RopeConfig::Type::kYarn);
  EXPECT_EQ(config.rope.factor, 4.0);
  EXPECT_EQ(config.rope.attention_factor, 1.5);
  EXPECT_EQ(config.rope.beta_fast, 16.0);
  EXPECT_EQ(config.rope.beta_slow, 1.0);
  EXPECT_EQ(config.rope.mscale, 0.7);
  EXPECT_FALSE(config.rope.truncate);
  const ModelConfig derived = parsed("qwen3", R"({"rope_scaling":{"rope_type":"yarn",
      "original_max_position_embeddings":64}})");
  EXPECT_EQ(derived.rope.factor, 4.0);  // 256 / 64
}

struct WindowCase {
  const char* name;
  const char* model_type;
  const char* changes;
  std::vector<int64_t> windows;  // of the four layers
};
void PrintTo(const WindowCase& window, std::ostream* out) { *out << window.name; }

class HfConfigWindow : public ::testing::TestWithParam<WindowCase> {};

TEST_P(HfConfigWindow, IsAsTransformersHasIt) {
  const ModelConfig config = parsed(GetParam().model_type, GetParam().changes);
  std::vector<int64_t> windows;
  for (int64_t layer = 0; layer < 4; ++layer) windows.push_back(config.layer_window(layer));
  EXPECT_EQ(windows, GetParam().windows);
}

INSTANTIATE_TEST_SUITE_P(
    Types, HfConfigWindow,
    ::testing::ValuesIn(std::vector<WindowCase>{
        {"LlamaHasNone", "llama", R"({"sliding_window":8})", {0, 0, 0, 0}},
        {"MistralEveryLayer", "mistral", R"({"sliding_window":8})", {8, 8, 8, 8}},
        {"MistralNull", "mistral", R"({"sliding_window":null})", {0, 0, 0, 0}},
        {"MistralSilent", "mistral", "{}", {4096, 4096, 4096, 4096}},
        {"Phi3Silent", "phi3", "{}", {0, 0, 0, 0}},
        {"Qwen2Unused", "qwen2", R"({"sliding_window":8,"max_window_layers":2})", {0, 0, 0, 0}},
        {"Qwen2Off",
         "qwen2",
         R"({"sliding_window":8,"max_window_layers":2,"use_sliding_window":false})",
         {0, 0, 0, 0}},
        {"Qwen2FromALayerOn",
         "qwen2",
         R"({"sliding_window":8,"max_window_layers":2,"use_sliding_window":true})",
         {0, 0, 8, 8}},
        {"Qwen3ByLayerTypes",
         "qwen3",
         R"({"sliding_window":8,"use_sliding_window":true,"layer_types":["sliding_attention",
             "full_attention","sliding_attention","full_attention"]})",
         {8, 0, 8, 0}},
        {"Qwen3MoeEveryLayer",
         "qwen3_moe",
         R"({"sliding_window":8,"max_window_layers":2,"use_sliding_window":true})",
         {8, 8, 8, 8}},
        {"Gemma2EveryOther", "gemma2", R"({"sliding_window":8})", {8, 0, 8, 0}},
    }),
    [](const auto& info) { return std::string(info.param.name); });

TEST(HfConfigTest, ReadsExpertsUnderBothNames) {
  for (const char* key : {"num_experts", "num_local_experts"}) {
    const ModelConfig config = parsed("qwen3_moe", fmt::format(R"({{"{}":8,"num_experts_per_tok":2,
            "moe_intermediate_size":48,"norm_topk_prob":true,"decoder_sparse_step":2,
            "mlp_only_layers":[3]}})",
                                                               key));
    EXPECT_EQ(config.num_experts, 8);
    EXPECT_EQ(config.num_experts_per_tok, 2);
    EXPECT_EQ(config.moe_intermediate_size, 48);
    EXPECT_TRUE(config.norm_topk_prob);
    EXPECT_FALSE(config.layer_is_moe(0));
    EXPECT_TRUE(config.layer_is_moe(1));
    EXPECT_FALSE(config.layer_is_moe(3));
  }
}

TEST(HfConfigTest, TakesTheTextPartOfAWrapper) {
  const Json json = parse_json(R"({"architectures":["Gemma3ForConditionalGeneration"],
      "model_type":"gemma3","torch_dtype":"bfloat16","vision_config":{},
      "text_config":{"model_type":"gemma3_text","hidden_size":64,"intermediate_size":128,
        "num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":100}})",
                               "test");
  const ModelConfig config = parse_hf_config(json, "config.json");
  EXPECT_EQ(config.architecture, "Gemma3ForConditionalGeneration");
  EXPECT_EQ(config.model_type, "gemma3_text");
  EXPECT_EQ(config.vocab_size, 100);
  EXPECT_EQ(config.dtype, DType::kBFloat16);
  EXPECT_TRUE(hf_config_has_dtype(json));
}

TEST(HfConfigTest, AnUnknownArchitectureIsReadForTheRegistryToRefuse) {
  EXPECT_EQ(parsed("new_type", R"({"architectures":["NewForCausalLM"]})").architecture,
            "NewForCausalLM");
}

struct BadCase {
  const char* name;
  const char* changes;
  const char* message;
  ErrorKind kind = ErrorKind::kBadFile;
};
void PrintTo(const BadCase& bad, std::ostream* out) { *out << bad.name; }

class HfConfigBad : public ::testing::TestWithParam<BadCase> {};

TEST_P(HfConfigBad, IsRefusedWithAReason) {
  try {
    parsed("llama", GetParam().changes);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), GetParam().kind) << error.what();
    EXPECT_THAT(error.what(), HasSubstr("config.json: "));
    EXPECT_THAT(error.what(), HasSubstr(GetParam().message));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Values, HfConfigBad,
    ::testing::ValuesIn(std::vector<BadCase>{
        {"NoLayers", R"({"num_hidden_layers":0})", "num_hidden_layers is 0, expected a whole"},
        {"MissingSize", R"({"hidden_size":null})", "hidden_size is missing"},
        {"NegativeSize", R"({"hidden_size":-64})", "hidden_size is -64"},
        {"HugeSize", R"({"hidden_size":1e300})", "hidden_size is 1e+300"},
        {"HugeWholeNumber", R"({"vocab_size":18446744073709551615})", "vocab_size is 1844674407"},
        {"HalfASize", R"({"hidden_size":64.5})", "hidden_size is 64.5"},
        {"SizeAsText", R"({"hidden_size":"64"})", "hidden_size is \"64\""},
        {"SizeAsBool", R"({"hidden_size":true})", "hidden_size is true"},
        {"SizeAsList", R"({"intermediate_size":[128,128]})", "intermediate_size is [128,128]"},
        {"ZeroHeads", R"({"num_attention_heads":0})", "num_attention_heads is 0"},
        {"ZeroKvHeads", R"({"num_key_value_heads":0})", "num_key_value_heads is 0"},
        {"UnevenHeads", R"({"num_key_value_heads":3})", "4 query heads cannot share 3"},
        {"UnevenHidden", R"({"hidden_size":66})", "hidden_size 66 is no multiple of 4"},
        {"OddHeadDim", R"({"head_dim":15})", "head_dim is 15"},
        {"ZeroHeadDim", R"({"head_dim":0})", "head_dim is 0"},
        {"NegativeEps", R"({"rms_norm_eps":-1})", "rms_norm_eps is -1"},
        {"EpsAsText", R"({"rms_norm_eps":"small"})", "rms_norm_eps is \"small\""},
        {"UnknownDtype", R"({"dtype":"int4"})", "dtype is \"int4\""},
        {"DtypeOfBlocks", R"({"torch_dtype":"q4_0"})", "torch_dtype is \"q4_0\""},
        {"ArchitecturesAsText", R"({"architectures":"LlamaForCausalLM"})", "a list of at least"},
        {"NoArchitecture", R"({"model_type":"unheard_of"})", "no \"architectures\""},
        {"TieAsNumber", R"({"tie_word_embeddings":1})", "expected true or false"},
        {"ZeroTheta", R"({"rope_theta":0})", "rope_theta is 0"},
        {"ThetaOfOne", R"({"rope_theta":1})", "rope_theta is 1"},
        {"RopeAsText", R"({"rope_scaling":"yarn"})", "rope_scaling is \"yarn\", expected an obj"},
        {"RopeWithoutFactor", R"({"rope_scaling":{"type":"linear"}})", "factor is missing"},
        {"ZeroFactor", R"({"rope_scaling":{"type":"linear","factor":0}})", "factor is 0"},
        {"Llama3WithoutOriginal", R"({"rope_scaling":{"rope_type":"llama3","factor":8}})",
         "original_max_position_embeddings is missing"},
        {"Llama3Reversed",
         R"({"rope_scaling":{"rope_type":"llama3","factor":8,"low_freq_factor":4,
             "high_freq_factor":1,"original_max_position_embeddings":64}})",
         "high_freq_factor is 1"},
        {"UnknownRope", R"({"rope_scaling":{"rope_type":"longrope","factor":8}})",
         "rope type 'longrope' is not supported", ErrorKind::kUnsupported},
        {"NothingRotates", R"({"partial_rotary_factor":0.01})", "0 of 16 dimensions"},
        {"TooMuchRotates", R"({"partial_rotary_factor":1.5})", "partial_rotary_factor is 1.5"},
        {"TooManyExperts", R"({"num_experts":8,"num_experts_per_tok":9})", "9 of 8 experts"},
        {"Quantized", R"({"quantization_config":{"quant_method":"gptq"}})", "quantised ('gptq')",
         ErrorKind::kUnsupported},
    }),
    [](const auto& info) { return std::string(info.param.name); });

TEST(HfConfigTest, LayerTypesMustFitTheLayers) {
  EXPECT_THROW(parsed("qwen3", R"({"sliding_window":8,"use_sliding_window":true,
                                   "layer_types":["full_attention"]})"),
               Error);
  EXPECT_THROW(parsed("gemma2", R"({"sliding_window":8,"layer_types":["a","b","c","d"]})"), Error);
  EXPECT_THROW(parsed("gemma2", R"({"sliding_window":0})"), Error);
  EXPECT_THROW(parse_hf_config(Json::array(), "config.json"), Error);
}

TEST(GenerationConfigTest, ReadsSamplingAndAllEosIds) {
  const auto read = [](const char* text) {
    return parse_generation_config(parse_json(text, "test"), "generation_config.json");
  };
  const GenerationConfig config = read(R"({"eos_token_id":[151645,151643],"temperature":0.6,
      "top_p":0.95,"top_k":20,"min_p":0.1,"repetition_penalty":1.05,"do_sample":true})");
  EXPECT_THAT(config.eos_token_ids, ElementsAre(151645, 151643));
  EXPECT_EQ(config.temperature, 0.6);
  EXPECT_EQ(config.top_p, 0.95);
  EXPECT_EQ(config.top_k, 20);
  EXPECT_EQ(config.min_p, 0.1);
  EXPECT_EQ(config.repetition_penalty, 1.05);
  EXPECT_EQ(config.do_sample, true);
  EXPECT_THAT(read(R"({"eos_token_id":2})").eos_token_ids, ElementsAre(2));
  EXPECT_THAT(read(R"({"eos_token_id":null})").eos_token_ids, IsEmpty());
  for (const char* bad :
       {R"({"eos_token_id":"2"})", R"({"eos_token_id":-1})", R"({"eos_token_id":[1,2.5]})",
        R"({"eos_token_id":4294967296})", R"({"temperature":-1})", R"({"top_p":1.5})",
        R"({"top_k":-2})", R"({"do_sample":1})", R"({"min_p":"x"})", "[]"}) {
    EXPECT_THROW(read(bad), Error) << bad;
  }
}

}  // namespace
}  // namespace minisgl
