#include "loader/config_limits.h"

#include <cmath>

#include "utils/error.h"

namespace minisgl {

void check_config(ModelConfig& config, const std::string& path) {
  const auto refuse = [&](const std::string& what) {
    throw_error(ErrorKind::kBadFile, "{}: {}", path, what);
  };
  if (config.num_qo_heads % config.num_kv_heads != 0) {
    refuse(fmt::format("{} query heads cannot share {} key/value heads evenly", config.num_qo_heads,
                       config.num_kv_heads));
  }
  if (config.head_dim % 2 != 0) {
    refuse(fmt::format("head_dim is {}, expected an even number", config.head_dim));
  }
  const double rotary = static_cast<double>(config.head_dim) * config.rope.partial_rotary_factor;
  if (static_cast<int64_t>(rotary) < 2 || static_cast<int64_t>(rotary) % 2 != 0) {
    refuse(fmt::format("{} of {} dimensions are rotated, expected an even number from 2",
                       static_cast<int64_t>(rotary), config.head_dim));
  }
  if (!config.rope.freq_factors.empty() &&
      static_cast<int64_t>(config.rope.freq_factors.size()) * 2 != static_cast<int64_t>(rotary)) {
    refuse(fmt::format("{} rope factors for {} rotated dimensions", config.rope.freq_factors.size(),
                       static_cast<int64_t>(rotary)));
  }
  if (config.num_experts > 0) {
    if (config.moe_intermediate_size == 0) config.moe_intermediate_size = config.intermediate_size;
    if (config.num_experts_per_tok < 1 || config.num_experts_per_tok > config.num_experts) {
      refuse(
          fmt::format("{} of {} experts a token", config.num_experts_per_tok, config.num_experts));
    }
  }
  if (!config.layer_is_windowed.empty() &&
      static_cast<int64_t>(config.layer_is_windowed.size()) != config.num_layers) {
    refuse(fmt::format("{} layer types for {} layers", config.layer_is_windowed.size(),
                       config.num_layers));
  }
}

void check_eos(const GenerationConfig& generation, int64_t vocab_size, const std::string& path) {
  for (const int32_t id : generation.eos_token_ids) {
    if (id < 0 || id >= vocab_size) {
      throw_error(ErrorKind::kBadFile, "{}: the end-of-text id {} is not in the vocabulary of {}",
                  path, id, vocab_size);
    }
  }
}

}  // namespace minisgl
