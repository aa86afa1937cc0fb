// What a checkpoint's config says about its model. Plain data with Hugging Face's names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tensor/dtype.h"

namespace minisgl {

// Rotary position embedding; rotates pairs (i, i + rotary_dim / 2) of each head (NeoX order).
struct RopeConfig {
  enum class Type { kDefault, kLinear, kLlama3, kYarn };
  Type type = Type::kDefault;
  double theta = 10000.0;
  double factor = 1.0;                           // linear, llama3, yarn
  double low_freq_factor = 1.0;                  // llama3
  double high_freq_factor = 4.0;                 // llama3
  int64_t original_max_position_embeddings = 0;  // llama3, yarn; 0: max_position_embeddings
  std::optional<double> attention_factor;        // yarn: multiplies cos and sin
  double beta_fast = 32.0;                       // yarn
  double beta_slow = 1.0;                        // yarn
  std::optional<double> mscale, mscale_all_dim;  // yarn, DeepSeek's way of saying attention_factor
  bool truncate = true;                          // yarn: correction range rounded to whole dims
  double partial_rotary_factor = 1.0;            // share of head_dim that is rotated
  // [rotary_dim / 2] or empty: each frequency is divided by its own factor, whatever the type (how
  // GGUF files keep llama3's scaling).
  std::vector<float> freq_factors;
};

struct ModelConfig {
  std::string architecture;  // e.g. "Qwen3ForCausalLM"
  std::string model_type;    // e.g. "qwen3"
  int64_t num_layers = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t vocab_size = 0;
  int64_t num_qo_heads = 0;  // num_attention_heads
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  double rms_norm_eps = 1e-6;
  std::string hidden_act = "silu";
  bool tie_word_embeddings = false;
  bool attention_bias = false;      // biases of q, k, v (Qwen2 always has them)
  bool attention_out_bias = false;  // bias of o_proj
  bool mlp_bias = false;
  int64_t max_position_embeddings = 0;
  RopeConfig rope;

  // Sliding window in tokens, the query itself included; 0: none. Per layer: layer_window(i).
  int64_t sliding_window = 0;
  std::vector<bool> layer_is_windowed;  // empty: every layer, if sliding_window > 0

  // Mixture of experts; 0 experts: dense.
  int64_t num_experts = 0;
  int64_t num_experts_per_tok = 0;
  int64_t moe_intermediate_size = 0;
  bool norm_topk_prob = false;
  int64_t decoder_sparse_step = 1;
  std::vector<int64_t> mlp_only_layers;

  DType dtype = DType::kBFloat16;  // what the checkpoint was saved in ("torch_dtype" or "dtype")

  int64_t layer_window(int64_t layer) const {
    const bool windowed =
        layer_is_windowed.empty() || layer_is_windowed[static_cast<size_t>(layer)];
    return windowed ? sliding_window : 0;
  }
  bool layer_is_moe(int64_t layer) const {
    if (num_experts == 0) return false;
    for (const int64_t dense : mlp_only_layers) {
      if (dense == layer) return false;
    }
    return (layer + 1) % decoder_sparse_step == 0;
  }
};

// generation_config.json: how the model's makers want it sampled, and every id that ends a text.
struct GenerationConfig {
  std::vector<int32_t> eos_token_ids;
  std::optional<double> temperature, top_p, min_p, repetition_penalty;
  std::optional<int64_t> top_k;
  std::optional<bool> do_sample;
};

}  // namespace minisgl
