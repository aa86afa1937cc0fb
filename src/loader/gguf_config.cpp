#include "loader/gguf_config.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "loader/config_limits.h"
#include "loader/gguf_names.h"
#include "utils/error.h"
#include "utils/quote.h"

namespace minisgl {
namespace {

// Bounded look-ups of "ARCHITECTURE.key".
class Metadata {
 public:
  explicit Metadata(const GgufFile& file)
      : file_(file), family_(find_gguf_family(architecture(file), file.path())) {}

  const GgufFamily& family() const { return family_; }
  const std::string& path() const { return file_.path(); }
  std::string full(std::string_view key) const { return fmt::format("{}.{}", family_.name, key); }
  bool has(std::string_view key) const { return file_.find(full(key)) != nullptr; }

  // A number, or a list with that number for every layer.
  std::optional<int64_t> integer(std::string_view key, int64_t min, int64_t max) const {
    const std::string name = full(key);
    const GgufValue* value = file_.find(name);
    if (value == nullptr) return std::nullopt;
    int64_t number = 0;
    if (value->type == GgufType::kArray) {
      const auto all = *file_.integers(name);
      if (all.empty() || std::count(all.begin(), all.end(), all[0]) != std::ssize(all)) {
        throw_error(ErrorKind::kUnsupported, "{}: {} differs between layers, expected one value",
                    path(), name);
      }
      number = all[0];
    } else {
      number = *file_.integer(name);
    }
    if (number < min || number > max) {
      throw_error(ErrorKind::kBadFile, "{}: {} is {}, expected {} to {}", path(), name, number, min,
                  max);
    }
    return number;
  }
  int64_t need_integer(std::string_view key, int64_t min, int64_t max) const {
    const auto number = integer(key, min, max);
    if (!number) {
      throw_error(ErrorKind::kBadFile, "{}: metadata key {} is missing", path(), full(key));
    }
    return *number;
  }
  std::optional<double> number(std::string_view key, double min, double max) const {
    const auto number = file_.number(full(key));
    if (number && !(*number >= min && *number <= max)) {
      throw_error(ErrorKind::kBadFile, "{}: {} is {}, expected {} to {}", path(), full(key),
                  *number, min, max);
    }
    return number;
  }
  std::optional<std::string_view> string(std::string_view key) const {
    return file_.string(full(key));
  }

 private:
  static std::string_view architecture(const GgufFile& file) {
    const auto name = file.string("general.architecture");
    if (!name) {
      throw_error(ErrorKind::kBadFile,
                  "{}: metadata key general.architecture is missing; it is no model", file.path());
    }
    return *name;
  }

  const GgufFile& file_;
  const GgufFamily& family_;
};

const GgufTensor& need_tensor(const GgufFile& file, const char* name) {
  const GgufTensor* tensor = file.find_tensor(name);
  if (tensor == nullptr) {
    throw_error(ErrorKind::kBadFile, "{}: tensor '{}' is missing", file.path(), name);
  }
  return *tensor;
}

void read_sizes(ModelConfig& config, const Metadata& meta, const GgufFile& file) {
  config.num_layers = meta.need_integer("block_count", 1, kMaxLayers);
  config.hidden_size = meta.need_integer("embedding_length", 1, kMaxWidth);
  config.intermediate_size = meta.need_integer("feed_forward_length", 1, kMaxWidth);
  config.num_qo_heads = meta.need_integer("attention.head_count", 1, kMaxHeads);
  config.num_kv_heads =
      meta.integer("attention.head_count_kv", 1, kMaxHeads).value_or(config.num_qo_heads);
  config.max_position_embeddings = meta.need_integer("context_length", 1, kMaxPositions);
  if (const auto head_dim = meta.integer("attention.key_length", 2, kMaxHeadDim)) {
    config.head_dim = *head_dim;
  } else if (config.hidden_size % config.num_qo_heads == 0) {
    config.head_dim = config.hidden_size / config.num_qo_heads;
  } else {
    throw_error(ErrorKind::kBadFile,
                "{}: embedding_length {} is no multiple of {} heads and there is no key_length",
                meta.path(), config.hidden_size, config.num_qo_heads);
  }
  const auto value_length = meta.integer("attention.value_length", 1, kMaxHeadDim);
  if (value_length.value_or(config.head_dim) != config.head_dim) {
    throw_error(ErrorKind::kUnsupported, "{}: keys of {} and values of {} elements, expected equal",
                meta.path(), config.head_dim, *value_length);
  }
  config.vocab_size = need_tensor(file, "token_embd.weight").dims[1];
  if (config.vocab_size > kMaxVocab) {
    throw_error(ErrorKind::kBadFile, "{}: a vocabulary of {}, expected at most {}", meta.path(),
                config.vocab_size, kMaxVocab);
  }
}

void read_details(ModelConfig& config, const Metadata& meta, const GgufFile& file) {
  const auto eps = meta.number("attention.layer_norm_rms_epsilon", 0, 1);
  if (!eps) {
    throw_error(ErrorKind::kBadFile, "{}: metadata key {} is missing", meta.path(),
                meta.full("attention.layer_norm_rms_epsilon"));
  }
  config.rms_norm_eps = *eps;
  config.hidden_act = meta.family().hidden_act;
  const auto has = [&](const char* name) { return file.find_tensor(name) != nullptr; };
  config.tie_word_embeddings = !has("output.weight");
  config.attention_bias = has("blk.0.attn_q.bias") || has("blk.0.attn_qkv.bias");
  config.attention_out_bias = has("blk.0.attn_output.bias");
  config.mlp_bias = has("blk.0.ffn_up.bias");
  // Quantised matrices are multiplied in float32.
  const uint32_t type = need_tensor(file, "token_embd.weight").type;
  const std::string_view name = find_ggml_type(type)->name;
  config.dtype = name == "F16"    ? DType::kFloat16
                 : name == "BF16" ? DType::kBFloat16
                                  : DType::kFloat32;
}

// Llama 3's scaling: a tensor of what each frequency is divided by.
std::vector<float> rope_factors(const GgufFile& file) {
  const GgufTensor* tensor = file.find_tensor("rope_freqs.weight");
  if (tensor == nullptr) return {};
  const std::string_view type = find_ggml_type(tensor->type)->name;
  if (type != "F32" || tensor->num_elements() != tensor->dims[0]) {
    throw_error(ErrorKind::kBadFile, "{}: tensor 'rope_freqs.weight' is no vector of F32",
                file.path());
  }
  std::vector<float> factors(static_cast<size_t>(tensor->dims[0]));
  std::memcpy(factors.data(), tensor->data.data(), tensor->data.size());
  for (const float factor : factors) {
    if (!(factor > 0 && std::isfinite(factor))) {
      throw_error(ErrorKind::kBadFile,
                  "{}: tensor 'rope_freqs.weight' holds {}, expected numbers "
                  "above 0",
                  file.path(), factor);
    }
  }
  return factors;
}

// part / whole, so that multiplying by `whole` again gives at least `part`, not a hair less.
double share(int64_t part, int64_t whole) {
  double factor = static_cast<double>(part) / static_cast<double>(whole);
  while (factor * static_cast<double>(whole) < static_cast<double>(part)) {
    factor = std::nextafter(factor, 2.0);
  }
  return factor;
}

constexpr double kMaxRopeNumber = 1e12;
constexpr double kTiny = 1e-6;

void read_yarn(RopeConfig& rope, const Metadata& meta) {
  rope.original_max_position_embeddings =
      meta.integer("rope.scaling.original_context_length", 1, kMaxPositions).value_or(0);
  rope.beta_fast = meta.number("rope.scaling.yarn_beta_fast", kTiny, kMaxRopeNumber).value_or(32.0);
  rope.beta_slow = meta.number("rope.scaling.yarn_beta_slow", kTiny, kMaxRopeNumber).value_or(1.0);
  // The file's factor comes on top of yarn's own, Hugging Face's is the whole.
  auto extra = meta.number("rope.scaling.yarn_attn_factor", kTiny, kMaxRopeNumber);
  if (!extra) extra = meta.number("rope.scaling.attn_factor", kTiny, kMaxRopeNumber);
  if (extra && *extra != 1.0) {
    rope.attention_factor = *extra * (0.1 * std::log(std::max(rope.factor, 1.0)) + 1.0);
  }
  rope.truncate = meta.family().name != "gpt-oss";
}

void read_rope(ModelConfig& config, const Metadata& meta, const GgufFile& file) {
  RopeConfig& rope = config.rope;
  rope.theta = meta.number("rope.freq_base", 1.0 + kTiny, kMaxRopeNumber).value_or(10000.0);
  const auto rotated = meta.integer("rope.dimension_count", 2, config.head_dim);
  if (rotated) rope.partial_rotary_factor = share(*rotated, config.head_dim);
  rope.freq_factors = rope_factors(file);

  const std::string type(meta.string("rope.scaling.type").value_or("linear"));
  auto factor = meta.number("rope.scaling.factor", 0, kMaxRopeNumber);
  if (!factor) factor = meta.number("rope.scale_linear", 0, kMaxRopeNumber);
  const bool has_long_factors = file.find_tensor("rope_factors_long.weight") != nullptr;
  if ((type != "none" && type != "linear" && type != "yarn") || has_long_factors) {
    throw_error(ErrorKind::kUnsupported,
                "{}: rope scaling {} is not supported, expected none, linear or yarn", meta.path(),
                has_long_factors ? "'longrope'" : quote(type));
  }
  if (type == "none" || factor.value_or(0) == 0) return;
  rope.factor = std::max(*factor, kTiny);
  if (type == "yarn") {
    rope.type = RopeConfig::Type::kYarn;
    read_yarn(rope, meta);
  } else if (rope.factor != 1.0) {
    rope.type = RopeConfig::Type::kLinear;
  }
}

void read_window(ModelConfig& config, const Metadata& meta, const GgufFile& file) {
  const auto window = meta.integer("attention.sliding_window", 0, kMaxPositions);
  if (window.value_or(0) == 0) return;
  config.sliding_window = *window;
  const std::string_view family = meta.family().name;
  const std::string pattern_key = meta.full("attention.sliding_window_pattern");
  const GgufValue* pattern = file.find(pattern_key);
  int64_t every = family == "gemma3" ? 6 : family == "gemma2" || family == "gpt-oss" ? 2 : 0;
  if (pattern != nullptr && pattern->type == GgufType::kArray) {
    config.layer_is_windowed = *file.booleans(pattern_key);
    return;
  }
  if (pattern != nullptr) {
    every = *meta.integer("attention.sliding_window_pattern", 0, kMaxLayers);
  }
  if (every == 0) return;  // all layers
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    config.layer_is_windowed.push_back((layer + 1) % every != 0);
  }
}

void read_experts(ModelConfig& config, const Metadata& meta, const GgufFile& file) {
  config.num_experts = meta.integer("expert_count", 0, kMaxExperts).value_or(0);
  if (config.num_experts == 0) return;
  if (meta.family().name == "llama") config.architecture = "MixtralForCausalLM";
  config.num_experts_per_tok = meta.need_integer("expert_used_count", 1, kMaxExperts);
  config.moe_intermediate_size =
      meta.integer("expert_feed_forward_length", 1, kMaxWidth).value_or(config.intermediate_size);
  config.norm_topk_prob = file.boolean(meta.full("expert_weights_norm")).value_or(true);
}

// Keys that change what a plain decoder computes; a family that has them is no plain decoder.
void refuse_unknown_arithmetic(const Metadata& meta) {
  const std::string_view family = meta.family().name;
  if (family != "llama" && !family.starts_with("qwen")) return;
  for (const char* key : {"logit_scale", "embedding_scale", "residual_scale", "attention.scale",
                          "attn_logit_softcapping", "final_logit_softcapping",
                          "attention.layer_norm_epsilon", "expert_shared_count"}) {
    if (meta.has(key)) {
      throw_error(ErrorKind::kUnsupported, "{}: metadata key {} is not supported for {}",
                  meta.path(), meta.full(key), family);
    }
  }
}

}  // namespace

ModelConfig config_from_gguf(const GgufFile& file) {
  const Metadata meta(file);
  refuse_unknown_arithmetic(meta);
  ModelConfig config;
  config.architecture = meta.family().hf_architecture;
  config.model_type = meta.family().model_type;
  read_sizes(config, meta, file);
  read_details(config, meta, file);
  read_rope(config, meta, file);
  read_window(config, meta, file);
  read_experts(config, meta, file);
  check_config(config, file.path());
  return config;
}

GenerationConfig generation_from_gguf(const GgufFile& file) {
  GenerationConfig generation;
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                          "tokenizer.ggml.eom_token_id"}) {
    const auto id = file.integer(key);
    if (!id) continue;
    if (*id < 0 || *id > std::numeric_limits<int32_t>::max()) {
      throw_error(ErrorKind::kBadFile, "{}: {} is {}, expected a token id", file.path(), key, *id);
    }
    const auto token = static_cast<int32_t>(*id);
    auto& ids = generation.eos_token_ids;
    if (std::find(ids.begin(), ids.end(), token) == ids.end()) ids.push_back(token);
  }
  const auto number = [&](const char* key, double max) -> std::optional<double> {
    const auto value = file.number(key);
    if (value && !(*value >= 0 && *value <= max)) {
      throw_error(ErrorKind::kBadFile, "{}: {} is {}, expected 0 to {}", file.path(), key, *value,
                  max);
    }
    return value;
  };
  generation.temperature = number("general.sampling.temp", 1e6);
  generation.top_p = number("general.sampling.top_p", 1);
  generation.min_p = number("general.sampling.min_p", 1);
  generation.repetition_penalty = number("general.sampling.penalty_repeat", 1e6);
  if (number("general.sampling.top_k", std::numeric_limits<int32_t>::max())) {
    generation.top_k = file.integer("general.sampling.top_k");
  }
  return generation;
}

}  // namespace minisgl
