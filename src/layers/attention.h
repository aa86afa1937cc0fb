// Self-attention of a decoder layer: qkv, optional q/k norm, rope, the backend, out projection.
#pragma once

#include <optional>

#include "core/attention_spec.h"
#include "core/context.h"
#include "core/model_config.h"
#include "layers/init.h"
#include "layers/linear.h"
#include "layers/norm.h"
#include "layers/rope.h"

namespace minisgl {

enum class QKNorm { kNone, kPerHead };

struct RopeAttentionOptions {
  QKNorm qk_norm = QKNorm::kNone;
  bool qkv_bias = false;
  bool out_bias = false;
};

class RopeAttention {
 public:
  // `rope` outlives the layer.
  RopeAttention(const LayerInit& w, const ModelConfig& config, int layer, const Rope& rope,
                const RopeAttentionOptions& options = {});

  // x: [T, H] -> [T, H], in the context's block output.
  TensorView operator()(TensorView x, Context& ctx) const;

 private:
  AttentionSpec spec_;
  const Rope& rope_;
  Linear qkv_;
  std::optional<RMSNorm> q_norm_, k_norm_;
  Linear out_;
};

}  // namespace minisgl
