// The gated feed-forward block: down(act(gate(x)) * up(x))              (Shazeer 2020)
#pragma once

#include <string>

#include "core/context.h"
#include "core/model_config.h"
#include "layers/init.h"
#include "layers/linear.h"

namespace minisgl {

enum class Activation { kSilu, kGeluTanh };
// "silu", "gelu_pytorch_tanh", …; an error lists what is known.
Activation parse_activation(const std::string& name);

class GatedMLP {
 public:
  GatedMLP(const LayerInit& w, const ModelConfig& config, int64_t intermediate_size);
  GatedMLP(const LayerInit& w, const ModelConfig& config)
      : GatedMLP(w, config, config.intermediate_size) {}

  // x: [T, H] -> [T, H], in the context's block output.
  TensorView operator()(TensorView x, Context& ctx) const;

 private:
  Linear gate_up_;
  Linear down_;
  Activation activation_;
};

}  // namespace minisgl
