// Qwen3 (arXiv:2505.09388): pre-norm decoder, GQA, RMSNorm on each q and k head, SwiGLU.
#include "layers/attention.h"
#include "layers/mlp.h"
#include "models/decoder.h"
#include "models/makers.h"

namespace minisgl {
namespace {

struct Qwen3Layer {
  RMSNorm input_norm, post_attention_norm;
  RopeAttention self_attn;
  GatedMLP mlp;

  Qwen3Layer(const LayerInit& w, const ModelConfig& config, int layer, const Rope& rope)
      : input_norm(w / "input_layernorm", config),
        post_attention_norm(w / "post_attention_layernorm", config),
        self_attn(w / "self_attn", config, layer, rope,
                  {.qk_norm = QKNorm::kPerHead,
                   .qkv_bias = config.attention_bias,
                   .out_bias = config.attention_out_bias}),
        mlp(w / "mlp", config) {}

  void operator()(Residual& x, Context& ctx) const {  // x: [T, hidden_size]
    x += self_attn(input_norm(x, ctx), ctx);
    x += mlp(post_attention_norm(x, ctx), ctx);
  }
};

}  // namespace

std::unique_ptr<Model> make_qwen3(const ModelConfig& config, const LayerInit& w,
                                  int64_t max_seq_len, const LoadProgress& progress) {
  return std::make_unique<Decoder<Qwen3Layer>>(config, w, max_seq_len, progress);
}

}  // namespace minisgl
