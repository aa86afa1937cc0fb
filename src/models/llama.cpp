// Llama 2 and 3 (arXiv:2307.09288, arXiv:2407.21783): pre-norm decoder, GQA, SwiGLU, and a rope
// that 3.1 stretches. Mistral 7B (arXiv:2310.06825) is the same with a sliding window, which the
// config carries.
#include "layers/attention.h"
#include "layers/mlp.h"
#include "models/decoder.h"
#include "models/makers.h"

namespace minisgl {
namespace {

struct LlamaLayer {
  RMSNorm input_norm, post_attention_norm;
  RopeAttention self_attn;
  GatedMLP mlp;

  LlamaLayer(const LayerInit& w, const ModelConfig& config, int layer, const Rope& rope)
      : input_norm(w / "input_layernorm", config),
        post_attention_norm(w / "post_attention_layernorm", config),
        self_attn(w / "self_attn", config, layer, rope,
                  {.qkv_bias = config.attention_bias, .out_bias = config.attention_out_bias}),
        mlp(w / "mlp", config) {}

  void operator()(Residual& x, Context& ctx) const {  // x: [T, hidden_size]
    x += self_attn(input_norm(x, ctx), ctx);
    x += mlp(post_attention_norm(x, ctx), ctx);
  }
};

}  // namespace

std::unique_ptr<Model> make_llama(const ModelConfig& config, const LayerInit& w,
                                  int64_t max_seq_len, const LoadProgress& progress) {
  return std::make_unique<Decoder<LlamaLayer>>(config, w, max_seq_len, progress);
}

}  // namespace minisgl
