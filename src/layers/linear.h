// y = x W^T + b, with the weights of several projections merged into one product.
#pragma once

#include <memory>
#include <vector>

#include "core/context.h"
#include "kernel/kernels.h"
#include "layers/init.h"

namespace minisgl {

class Linear {
 public:
  // Weights `<w>.<part>.weight` under one another; with `bias` also `<w>.<part>.bias`.
  Linear(const LayerInit& w, std::vector<LayerInit::Part> parts, Split split, bool bias)
      : weight_(w.packed(parts, split)) {
    if (bias) bias_ = w.biases(parts, split);
  }

  int64_t out_features() const { return weight_->rows(); }
  // x: [T, in] -> [T, out]
  TensorView operator()(TensorView x, Context& ctx) const {
    return into(ctx.activation({x.dim(0), weight_->rows()}), x, ctx);
  }
  TensorView into(TensorView y, TensorView x, Context& ctx) const {
    ctx.kernels.linear(y, x, *weight_, bias_);
    return y;
  }

 private:
  std::unique_ptr<PackedMatrix> weight_;
  Tensor bias_;  // empty: none
};

}  // namespace minisgl
