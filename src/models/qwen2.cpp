// Qwen2 and 2.5 (arXiv:2407.10671, arXiv:2412.15115): Llama's layer with biases on q, k and v.
#include "layers/attention.h"
#include "layers/mlp.h"
#include "models/decoder.h"
#include "models/makers.h"

namespace minisgl {
namespace {

struct Qwen2Layer {
  RMSNorm input_norm, post_attention_norm;
  RopeAttention self_attn;
  GatedMLP mlp;

  Qwen2Layer(const LayerInit& w, const ModelConfig& config, int layer, const Rope& rope)
      : input_norm(w / "input_layernorm", config),
        post_attention_norm(w / "post_attention_layernorm", config),
        self_attn(w / "self_attn", config, layer, rope, {.qkv_bias = true}),
        mlp(w / "mlp", config) {}

  void operator()(Residual& x, Context& ctx) const {  // x: [T, hidden_size]
    x += self_attn(input_norm(x, ctx), ctx);
    x += mlp(post_attention_norm(x, ctx), ctx);
  }
};

}  // namespace

std::unique_ptr<Model> make_qwen2(const ModelConfig& config, const LayerInit& w,
                                  int64_t max_seq_len, const LoadProgress& progress) {
  return std::make_unique<Decoder<Qwen2Layer>>(config, w, max_seq_len, progress);
}

}  // namespace minisgl
