#include "layers/mlp.h"

namespace minisgl {

Activation parse_activation(const std::string& name) {
  if (name == "silu" || name == "swish") return Activation::kSilu;
  if (name == "gelu_pytorch_tanh" || name == "gelu_new") return Activation::kGeluTanh;
  throw_error(ErrorKind::kUnsupported,
              "hidden_act '{}' is not supported; known are silu and gelu_pytorch_tanh", name);
}

GatedMLP::GatedMLP(const LayerInit& w, const ModelConfig& config, int64_t intermediate_size)
    : gate_up_(w,
               {{"gate_proj", intermediate_size, config.hidden_size},
                {"up_proj", intermediate_size, config.hidden_size}},
               Split::kRows, config.mlp_bias),
      down_(w, {{"down_proj", config.hidden_size, intermediate_size}}, Split::kColumns,
            config.mlp_bias),
      activation_(parse_activation(config.hidden_act)) {}

TensorView GatedMLP::operator()(TensorView x, Context& ctx) const {
  const TensorView gate_up = gate_up_(x, ctx);
  const TensorView hidden = ctx.activation({x.dim(0), gate_up.dim(1) / 2});
  if (activation_ == Activation::kSilu) {
    ctx.kernels.silu_mul(hidden, gate_up);
  } else {
    ctx.kernels.gelu_mul(hidden, gate_up);
  }
  return down_.into(ctx.block_output(), hidden, ctx);
}

}  // namespace minisgl
