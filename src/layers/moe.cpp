#include "layers/moe.h"

namespace minisgl {

MoE::MoE(const LayerInit& w, const ModelConfig& config)
    : top_k_(config.num_experts_per_tok),
      normalize_(config.norm_topk_prob),
      router_(w, {{"gate", config.num_experts, config.hidden_size}}, Split::kNone, false) {
  const int64_t hidden = config.hidden_size, intermediate = config.moe_intermediate_size;
  for (int64_t e = 0; e < config.num_experts; ++e) {
    const LayerInit expert = w / "experts" / e;
    gate_up_.push_back(expert.packed(
        {{"gate_proj", intermediate, hidden}, {"up_proj", intermediate, hidden}}, Split::kRows));
    down_.push_back(expert.packed({{"down_proj", hidden, intermediate}}, Split::kColumns));
  }
}

TensorView MoE::operator()(TensorView x, Context& ctx) const {
  const int64_t tokens = x.dim(0);
  const TensorView logits = ctx.activation({tokens, router_.out_features()});
  router_.into(logits, x, ctx);
  const TensorView experts = ctx.allocate(DType::kInt32, {tokens, top_k_});
  const TensorView weights = ctx.allocate(DType::kFloat32, {tokens, top_k_});
  ctx.kernels.moe_route(experts, weights, logits, normalize_);
  const TensorView y = ctx.block_output();
  ctx.kernels.moe_mlp(y, x, experts, weights, gate_up_, down_, ctx.arena);
  return y;
}

}  // namespace minisgl
