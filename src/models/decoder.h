// What all plain decoders share: embedding, a stack of layers, a final norm, the LM head.
#pragma once

#include <memory>
#include <vector>

#include "layers/embedding.h"
#include "layers/norm.h"
#include "layers/rope.h"
#include "models/model.h"

namespace minisgl {

// Layer: a class with Layer(const LayerInit&, const ModelConfig&, int layer, const Rope&) and
// void operator()(Residual& x, Context& ctx) const.
template <class Layer>
class Decoder final : public Model {
 public:
  Decoder(const ModelConfig& config, const LayerInit& w, int64_t max_seq_len,
          const LoadProgress& progress)
      : rope_(w.kernels(), config.rope, config.head_dim, config.max_position_embeddings,
              max_seq_len),
        embed_tokens_(w / "model", "embed_tokens", config.vocab_size, config.hidden_size),
        norm_(w / "model" / "norm", config),
        lm_head_(w, embed_tokens_, config.tie_word_embeddings) {
    for (int layer = 0; layer < config.num_layers; ++layer) {
      layers_.push_back(
          std::make_unique<Layer>(w / "model" / "layers" / layer, config, layer, rope_));
      if (progress) progress(layer + 1, config.num_layers);
    }
  }

  TensorView forward(Context& ctx) const override {
    Residual x(embed_tokens_(ctx.batch.input_ids, ctx), ctx);  // [T, H]
    for (const auto& layer : layers_) {
      const ArenaScope scope(ctx.arena);
      (*layer)(x, ctx);
    }
    const TensorView hidden = norm_(x, ctx);
    return lm_head_(wanted_rows(hidden, ctx), ctx);
  }

 private:
  static TensorView wanted_rows(TensorView hidden, Context& ctx) {
    const TensorView rows = ctx.batch.logit_rows;
    if (rows.empty()) return hidden;
    const TensorView picked = ctx.activation({rows.dim(0), hidden.dim(1)});
    ctx.kernels.gather_rows(picked, hidden, rows);
    return picked;
  }

  Rope rope_;
  Embedding embed_tokens_;
  std::vector<std::unique_ptr<Layer>> layers_;
  RMSNorm norm_;
  LMHead lm_head_;
};

}  // namespace minisgl
