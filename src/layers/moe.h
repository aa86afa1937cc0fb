// Mixture of experts: a router picks k of E gated MLPs for each token.   (Shazeer et al. 2017)
#pragma once

#include <memory>
#include <vector>

#include "core/context.h"
#include "core/model_config.h"
#include "layers/init.h"
#include "layers/linear.h"

namespace minisgl {

// y = sum over the top k experts e of p_e * down_e(silu(gate_e(x)) * up_e(x)), p = softmax(router)
class MoE {
 public:
  MoE(const LayerInit& w, const ModelConfig& config);

  // x: [T, H] -> [T, H], in the context's block output.
  TensorView operator()(TensorView x, Context& ctx) const;

 private:
  int64_t top_k_;
  bool normalize_;
  Linear router_;
  std::vector<std::unique_ptr<PackedMatrix>> gate_up_, down_;
};

}  // namespace minisgl
