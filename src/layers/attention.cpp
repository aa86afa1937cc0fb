#include "layers/attention.h"

#include <cmath>

#include "attention/backend.h"

namespace minisgl {
namespace {

AttentionSpec make_spec(const ModelConfig& config, int layer) {
  AttentionSpec spec;
  spec.layer = layer;
  spec.num_qo_heads = config.num_qo_heads;
  spec.num_kv_heads = config.num_kv_heads;
  spec.head_dim = config.head_dim;
  spec.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(config.head_dim)));
  spec.window = config.layer_window(layer);
  return spec;
}

}  // namespace

RopeAttention::RopeAttention(const LayerInit& w, const ModelConfig& config, int layer,
                             const Rope& rope, const RopeAttentionOptions& options)
    : spec_(make_spec(config, layer)),
      rope_(rope),
      qkv_(w,
           {{"q_proj", config.num_qo_heads * config.head_dim, config.hidden_size},
            {"k_proj", config.num_kv_heads * config.head_dim, config.hidden_size},
            {"v_proj", config.num_kv_heads * config.head_dim, config.hidden_size}},
           Split::kRows, options.qkv_bias),
      out_(w, {{"o_proj", config.hidden_size, config.num_qo_heads * config.head_dim}},
           Split::kColumns, options.out_bias) {
  if (options.qk_norm == QKNorm::kPerHead) {
    q_norm_.emplace(w / "q_norm", config.head_dim, config.rms_norm_eps);
    k_norm_.emplace(w / "k_norm", config.head_dim, config.rms_norm_eps);
  }
}

TensorView RopeAttention::operator()(TensorView x, Context& ctx) const {
  const int64_t d = spec_.head_dim;
  const int64_t hq = spec_.num_qo_heads, hkv = spec_.num_kv_heads;
  const TensorView qkv = qkv_(x, ctx);  // [T, (Hq + 2 Hkv) D]
  const TensorView q = qkv.columns(0, hq * d).split_heads(hq, d);
  const TensorView k = qkv.columns(hq * d, hkv * d).split_heads(hkv, d);
  const TensorView v = qkv.columns((hq + hkv) * d, hkv * d).split_heads(hkv, d);
  if (q_norm_) {
    ctx.kernels.qk_norm_rope(q, k, q_norm_->weight(), k_norm_->weight(), q_norm_->eps(),
                             ctx.batch.positions, rope_.cos_sin());
  } else {
    ctx.kernels.rope(q, k, ctx.batch.positions, rope_.cos_sin());
  }
  const TensorView attended = ctx.activation({x.dim(0), hq, d});
  ctx.attention.forward(attended, q, k, v, spec_, ctx.batch);
  return out_.into(ctx.block_output(), attended.reshape({x.dim(0), hq * d}), ctx);
}

}  // namespace minisgl
