// Qwen3-MoE (arXiv:2505.09388): Qwen3's attention; most layers' MLP is a mixture of experts.
#include <optional>

#include "layers/attention.h"
#include "layers/mlp.h"
#include "layers/moe.h"
#include "models/decoder.h"
#include "models/makers.h"

namespace minisgl {
namespace {

struct Qwen3MoeLayer {
  RMSNorm input_norm, post_attention_norm;
  RopeAttention self_attn;
  std::optional<MoE> experts;  // one of the two
  std::optional<GatedMLP> mlp;

  Qwen3MoeLayer(const LayerInit& w, const ModelConfig& config, int layer, const Rope& rope)
      : input_norm(w / "input_layernorm", config),
        post_attention_norm(w / "post_attention_layernorm", config),
        self_attn(w / "self_attn", config, layer, rope,
                  {.qk_norm = QKNorm::kPerHead,
                   .qkv_bias = config.attention_bias,
                   .out_bias = config.attention_out_bias}) {
    if (config.layer_is_moe(layer)) {
      experts.emplace(w / "mlp", config);
    } else {
      mlp.emplace(w / "mlp", config);
    }
  }

  void operator()(Residual& x, Context& ctx) const {  // x: [T, hidden_size]
    x += self_attn(input_norm(x, ctx), ctx);
    const TensorView normed = post_attention_norm(x, ctx);
    x += experts ? (*experts)(normed, ctx) : (*mlp)(normed, ctx);
  }
};

}  // namespace

std::unique_ptr<Model> make_qwen3_moe(const ModelConfig& config, const LayerInit& w,
                                      int64_t max_seq_len, const LoadProgress& progress) {
  return std::make_unique<Decoder<Qwen3MoeLayer>>(config, w, max_seq_len, progress);
}

}  // namespace minisgl
