// Architecture name -> maker: one line each.
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "models/makers.h"
#include "models/model.h"

namespace minisgl {
namespace {

struct Entry {
  std::string_view architecture;
  ModelMaker* make;
};

constexpr Entry kModels[] = {
    {"LlamaForCausalLM", make_llama},        {"MistralForCausalLM", make_llama},
    {"Qwen2ForCausalLM", make_qwen2},        {"Qwen3ForCausalLM", make_qwen3},
    {"Qwen3MoeForCausalLM", make_qwen3_moe},
};

}  // namespace

std::vector<std::string> known_architectures() {
  std::vector<std::string> names;
  for (const Entry& entry : kModels) names.emplace_back(entry.architecture);
  return names;
}

std::unique_ptr<Model> make_model(const ModelConfig& config, const LayerInit& weights,
                                  int64_t max_seq_len, const LoadProgress& progress) {
  for (const Entry& entry : kModels) {
    if (config.architecture == entry.architecture) {
      return entry.make(config, weights, max_seq_len, progress);
    }
  }
  throw_error(ErrorKind::kUnsupported, "architecture '{}' is not supported; known are {}",
              config.architecture, fmt::join(known_architectures(), ", "));
}

std::vector<std::string> ignored_weights(const ModelConfig& config) {
  std::vector<std::string> ignored = {".rotary_emb.inv_freq", "rope_freqs.weight"};
  if (config.tie_word_embeddings) ignored.emplace_back("lm_head.weight");
  return ignored;
}

int64_t activation_bytes(const ModelConfig& config, int64_t tokens, int64_t logit_rows) {
  const int64_t attention = (2 * config.num_qo_heads + 2 * config.num_kv_heads) * config.head_dim;
  const int64_t dense = 3 * config.intermediate_size;
  const int64_t experts =
      config.num_experts_per_tok * (4 * config.moe_intermediate_size + 2 * config.hidden_size + 4) +
      config.num_experts;
  // Embedding, norms and the residual; then the widest sublayer; float32 throughout.
  const int64_t per_token = 4 * config.hidden_size + std::max({attention, dense, experts});
  const int64_t per_logit = config.vocab_size + config.hidden_size;
  constexpr int64_t kSlack = 1 << 20;  // alignment of some dozens of pieces
  return 4 * (tokens * per_token + logit_rows * per_logit) + kSlack;
}

}  // namespace minisgl
