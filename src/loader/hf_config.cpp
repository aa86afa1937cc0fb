#include "loader/hf_config.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "loader/config_limits.h"
#include "loader/config_reader.h"
#include "utils/quote.h"

namespace minisgl {
namespace {

// What transformers assumes where a config of this model type is silent, and what the type does
// whatever the config says. head_dim 0: hidden_size / heads; num_kv_heads 0: as many as heads.
struct Defaults {
  std::string_view model_type;
  std::string_view architecture;
  int64_t head_dim = 0;
  int64_t num_kv_heads = 0;
  double rms_norm_eps = 1e-6;
  bool tied = false;
};
constexpr Defaults kDefaults[] = {
    {.model_type = "llama", .architecture = "LlamaForCausalLM"},
    {.model_type = "mistral", .architecture = "MistralForCausalLM", .num_kv_heads = 8},
    {.model_type = "qwen2", .architecture = "Qwen2ForCausalLM"},
    {.model_type = "qwen3", .architecture = "Qwen3ForCausalLM", .head_dim = 128},
    {.model_type = "qwen3_moe", .architecture = "Qwen3MoeForCausalLM", .num_kv_heads = 4},
    {.model_type = "gemma2", .architecture = "Gemma2ForCausalLM", .head_dim = 256, .tied = true},
    {.model_type = "gemma3_text",
     .architecture = "Gemma3ForCausalLM",
     .head_dim = 256,
     .tied = true},
    {.model_type = "gpt_oss",
     .architecture = "GptOssForCausalLM",
     .head_dim = 64,
     .num_kv_heads = 8,
     .rms_norm_eps = 1e-5},
    {.model_type = "phi3", .architecture = "Phi3ForCausalLM", .rms_norm_eps = 1e-5},
    {.model_type = "granite", .architecture = "GraniteForCausalLM"},
    {.model_type = "olmo2", .architecture = "Olmo2ForCausalLM", .rms_norm_eps = 1e-5},
    {.model_type = "smollm3",
     .architecture = "SmolLM3ForCausalLM",
     .num_kv_heads = 4,
     .tied = true},
};

const Defaults& defaults_of(std::string_view model_type) {
  static constexpr Defaults kOther = {};
  for (const Defaults& defaults : kDefaults) {
    if (defaults.model_type == model_type) return defaults;
  }
  return kOther;
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The part of the config that is about the language model, with what only the wrapper says.
Json text_part(const Json& json, const ConfigReader& whole) {
  if (!whole.object("text_config")) return json;
  Json text = json["text_config"];
  for (const char* key : {"architectures", "dtype", "torch_dtype", "tie_word_embeddings",
                          "eos_token_id", "quantization_config"}) {
    if (json.contains(key) && !text.contains(key)) text[key] = json[key];
  }
  return text;
}

void read_identity(ModelConfig& config, const ConfigReader& json) {
  config.model_type = json.string("model_type").value_or("");
  if (const Json* list = json.find("architectures")) {
    const bool ok = list->is_array() && !list->empty() && list->front().is_string();
    if (!ok) json.throw_bad("architectures", "a list of at least one string");
    config.architecture = list->front().get<std::string>();
  } else {
    config.architecture = defaults_of(config.model_type).architecture;
  }
  if (config.architecture.empty()) {
    throw_error(ErrorKind::kBadFile,
                "{}: has no \"architectures\" and no \"model_type\" that tells them; it is no "
                "model's config",
                json.path());
  }
}

void refuse_quantized(const ConfigReader& json) {
  const auto quantization = json.object("quantization_config");
  if (!quantization) return;
  throw_error(ErrorKind::kUnsupported,
              "{}: the weights are quantised ({}), expected float32, float16 or bfloat16; take the "
              "original model, or a GGUF file of it",
              json.path(), quote(quantization->string("quant_method").value_or("unknown method")));
}

void read_sizes(ModelConfig& config, const ConfigReader& json, const Defaults& defaults) {
  config.num_layers = json.need_integer("num_hidden_layers", 1, kMaxLayers);
  config.hidden_size = json.need_integer("hidden_size", 1, kMaxWidth);
  config.intermediate_size = json.need_integer("intermediate_size", 1, kMaxWidth);
  config.vocab_size = json.need_integer("vocab_size", 1, kMaxVocab);
  config.num_qo_heads = json.need_integer("num_attention_heads", 1, kMaxHeads);
  const bool kv_is_null = json.mentions("num_key_value_heads");
  config.num_kv_heads =
      json.integer("num_key_value_heads", 1, kMaxHeads)
          .value_or(kv_is_null || defaults.num_kv_heads == 0 ? config.num_qo_heads
                                                             : defaults.num_kv_heads);
  const bool head_dim_is_null = json.mentions("head_dim");
  if (const auto head_dim = json.integer("head_dim", 2, kMaxHeadDim)) {
    config.head_dim = *head_dim;
  } else if (defaults.head_dim > 0 && !head_dim_is_null) {
    config.head_dim = defaults.head_dim;
  } else if (config.hidden_size % config.num_qo_heads == 0) {
    config.head_dim = config.hidden_size / config.num_qo_heads;
  } else {
    throw_error(ErrorKind::kBadFile,
                "{}: hidden_size {} is no multiple of {} attention heads and there is no head_dim",
                json.path(), config.hidden_size, config.num_qo_heads);
  }
  constexpr int64_t kDefaultPositions = 2048;
  config.max_position_embeddings =
      json.integer("max_position_embeddings", 1, kMaxPositions).value_or(kDefaultPositions);
}

void read_details(ModelConfig& config, const ConfigReader& json, const Defaults& defaults) {
  const std::string& type = config.model_type;
  config.rms_norm_eps = json.number("rms_norm_eps", 0, 1).value_or(defaults.rms_norm_eps);
  config.hidden_act =
      json.string("hidden_act").value_or(json.string("hidden_activation").value_or("silu"));
  config.tie_word_embeddings = json.boolean("tie_word_embeddings").value_or(defaults.tied);
  const bool bias = json.boolean("attention_bias").value_or(false);
  const bool has_no_bias = is_one_of(type, {"mistral", "phi3"});
  config.attention_bias = type == "qwen2" || (bias && !has_no_bias);
  config.attention_out_bias = bias && !has_no_bias && type != "qwen2";
  config.mlp_bias = json.boolean("mlp_bias").value_or(false);
  for (const char* key : {"dtype", "torch_dtype"}) {
    const auto name = json.string(key);
    if (!name) continue;
    const auto dtype = parse_dtype(*name);
    if (!dtype || !is_floating(*dtype)) json.throw_bad(key, "float32, float16 or bfloat16");
    config.dtype = *dtype;
    break;
  }
}

RopeConfig::Type rope_type(const ConfigReader& rope) {
  const std::string name =
      rope.string("rope_type").value_or(rope.string("type").value_or("default"));
  if (name == "default") return RopeConfig::Type::kDefault;
  if (name == "linear") return RopeConfig::Type::kLinear;
  if (name == "llama3") return RopeConfig::Type::kLlama3;
  if (name == "yarn") return RopeConfig::Type::kYarn;
  throw_error(ErrorKind::kUnsupported,
              "{}: rope type {} is not supported, expected default, linear, llama3 or yarn",
              rope.path(), quote(name));
}

constexpr double kMaxRopeNumber = 1e12;
constexpr double kTiny = 1e-6;

void read_rope_scaling(RopeConfig& rope, const ConfigReader& json, int64_t max_positions) {
  rope.type = rope_type(json);
  rope.original_max_position_embeddings =
      json.integer("original_max_position_embeddings", 1, kMaxPositions).value_or(0);
  const auto factor = json.number("factor", kTiny, kMaxRopeNumber);
  if (rope.type == RopeConfig::Type::kDefault) return;
  if (factor) {
    rope.factor = *factor;
  } else if (rope.type == RopeConfig::Type::kYarn && rope.original_max_position_embeddings > 0) {
    rope.factor = static_cast<double>(max_positions) /
                  static_cast<double>(rope.original_max_position_embeddings);
  } else {
    json.throw_bad("factor", "a number above 0");
  }
  if (rope.type == RopeConfig::Type::kLlama3) {
    rope.low_freq_factor = json.number("low_freq_factor", kTiny, kMaxRopeNumber).value_or(1.0);
    rope.high_freq_factor = json.number("high_freq_factor", kTiny, kMaxRopeNumber).value_or(4.0);
    if (rope.high_freq_factor < rope.low_freq_factor) {
      json.throw_bad("high_freq_factor", "at least low_freq_factor");
    }
    if (rope.original_max_position_embeddings == 0) {
      json.throw_bad("original_max_position_embeddings", "a whole number above 0");
    }
  }
  if (rope.type == RopeConfig::Type::kYarn) {
    rope.attention_factor = json.number("attention_factor", 0, kMaxRopeNumber);
    rope.beta_fast = json.number("beta_fast", kTiny, kMaxRopeNumber).value_or(32.0);
    rope.beta_slow = json.number("beta_slow", kTiny, kMaxRopeNumber).value_or(1.0);
    rope.mscale = json.number("mscale", 0, kMaxRopeNumber);
    rope.mscale_all_dim = json.number("mscale_all_dim", 0, kMaxRopeNumber);
    rope.truncate = json.boolean("truncate").value_or(true);
  }
}

// The newer style keeps all of it in rope_parameters (one for each layer type in some families);
// the older has rope_theta beside an optional rope_scaling.
void read_rope(ModelConfig& config, const ConfigReader& json) {
  RopeConfig& rope = config.rope;
  auto scaling = json.object("rope_parameters");
  if (scaling && scaling->object("full_attention")) scaling = scaling->object("full_attention");
  if (!scaling) scaling = json.object("rope_scaling");
  const ConfigReader& first = scaling ? *scaling : json;
  // A base of 1 would not rotate at all, and yarn divides by its logarithm.
  constexpr double kMinTheta = 1.0 + kTiny;
  const auto theta = first.number("rope_theta", kMinTheta, kMaxRopeNumber);
  rope.theta = theta ? *theta : json.number("rope_theta", kMinTheta, kMaxRopeNumber).value_or(1e4);
  const auto partial = first.number("partial_rotary_factor", kTiny, 1);
  rope.partial_rotary_factor =
      partial ? *partial : json.number("partial_rotary_factor", kTiny, 1).value_or(1.0);
  if (scaling) read_rope_scaling(rope, *scaling, config.max_position_embeddings);
}

// Which layers see only a window, as transformers decides it for the model type:
//   llama, granite and others never; mistral, phi3 and qwen3_moe every layer, where set;
//   qwen2 and qwen3 by layer_types, or from max_window_layers on; gemma, gpt_oss by layer_types.
void read_window(ModelConfig& config, const ConfigReader& json) {
  constexpr int64_t kQwenWindow = 4096;
  const std::string& type = config.model_type;
  const bool is_qwen = is_one_of(type, {"qwen2", "qwen3", "qwen3_moe"});
  const bool by_layer = is_one_of(type, {"qwen2", "qwen3", "gemma2", "gemma3_text", "gpt_oss"});
  if (!is_qwen && !by_layer && !is_one_of(type, {"mistral", "phi3"})) return;
  if (is_qwen && !json.boolean("use_sliding_window").value_or(false)) return;

  auto window = json.integer("sliding_window", 1, kMaxPositions);
  if (!window && !json.mentions("sliding_window") && type != "phi3") {
    window = type == "gpt_oss" ? 128 : kQwenWindow;
  }
  if (!window) return;
  config.sliding_window = *window;
  if (!by_layer) return;

  if (const Json* types = json.find("layer_types")) {
    if (!types->is_array()) json.throw_bad("layer_types", "a list of strings");
    for (const Json& layer : *types) {
      const std::string name = layer.is_string() ? layer.get<std::string>() : "";
      if (name != "sliding_attention" && name != "full_attention") {
        json.throw_bad("layer_types", "a list of \"full_attention\" and \"sliding_attention\"");
      }
      config.layer_is_windowed.push_back(name == "sliding_attention");
    }
    return;
  }
  const int64_t first = json.integer("max_window_layers", 0, kMaxLayers).value_or(28);
  const int64_t pattern =
      json.integer("sliding_window_pattern", 1, kMaxLayers).value_or(type == "gemma3_text" ? 6 : 2);
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    config.layer_is_windowed.push_back(is_qwen ? layer >= first : (layer + 1) % pattern != 0);
  }
}

void read_experts(ModelConfig& config, const ConfigReader& json) {
  const bool is_qwen = config.model_type == "qwen3_moe";
  auto experts = json.integer("num_experts", 0, kMaxExperts);
  if (!experts) experts = json.integer("num_local_experts", 0, kMaxExperts);
  config.num_experts = experts.value_or(is_qwen ? 128 : 0);
  if (config.num_experts == 0) return;
  config.num_experts_per_tok =
      json.integer("num_experts_per_tok", 1, kMaxExperts).value_or(is_qwen ? 8 : 2);
  config.moe_intermediate_size =
      json.integer("moe_intermediate_size", 1, kMaxWidth).value_or(is_qwen ? 768 : 0);
  config.norm_topk_prob = json.boolean("norm_topk_prob").value_or(false);
  config.decoder_sparse_step = json.integer("decoder_sparse_step", 1, kMaxLayers).value_or(1);
  if (const Json* layers = json.find("mlp_only_layers")) {
    if (!layers->is_array()) json.throw_bad("mlp_only_layers", "a list of layers");
    for (const Json& layer : *layers) {
      if (!layer.is_number_unsigned() || layer.get<uint64_t>() > kMaxLayers) {
        json.throw_bad("mlp_only_layers", "a list of layers");
      }
      config.mlp_only_layers.push_back(layer.get<int64_t>());
    }
  }
}

}  // namespace

ModelConfig parse_hf_config(const Json& json, const std::string& path) {
  if (!json.is_object()) throw_error(ErrorKind::kBadFile, "{}: is no JSON object", path);
  const Json text = text_part(json, ConfigReader(json, path));
  const ConfigReader reader(text, path);
  ModelConfig config;
  read_identity(config, reader);
  refuse_quantized(reader);
  const Defaults& defaults = defaults_of(config.model_type);
  read_sizes(config, reader, defaults);
  read_details(config, reader, defaults);
  read_rope(config, reader);
  read_window(config, reader);
  read_experts(config, reader);
  check_config(config, path);
  return config;
}

bool hf_config_has_dtype(const Json& json) {
  const auto says = [](const Json& object) {
    for (const char* key : {"dtype", "torch_dtype"}) {
      if (object.contains(key) && object[key].is_string()) return true;
    }
    return false;
  };
  return says(json) || (json.contains("text_config") && says(json["text_config"]));
}

}  // namespace minisgl
