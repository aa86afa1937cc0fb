// RMSNorm, and the residual stream that it reads.
#pragma once

#include "core/context.h"
#include "core/model_config.h"
#include "kernel/kernels.h"
#include "layers/init.h"

namespace minisgl {

// The residual stream x: [T, H]. `x += f` only remembers f, so that the next norm adds it and
// normalises in one pass; two additions in a row, or value(), settle it.
class Residual {
 public:
  Residual(TensorView x, Context& ctx) : x_(x), ctx_(ctx) {}

  void operator+=(TensorView addend) {
    settle();
    pending_ = addend;
  }
  TensorView value() {
    settle();
    return x_;
  }

 private:
  friend class RMSNorm;
  void settle() {
    if (!pending_.empty()) ctx_.kernels.add(x_, pending_);
    pending_ = {};
  }

  TensorView x_;
  TensorView pending_;
  Context& ctx_;
};

// y = w * x / sqrt(mean(x^2) + eps)                                  (Zhang & Sennrich 2019)
class RMSNorm {
 public:
  RMSNorm(const LayerInit& w, int64_t dim, double eps)
      : weight_(w.vector("weight", dim)), eps_(static_cast<float>(eps)) {}
  RMSNorm(const LayerInit& w, const ModelConfig& config)
      : RMSNorm(w, config.hidden_size, config.rms_norm_eps) {}

  TensorView operator()(Residual& x, Context& ctx) const {
    const TensorView y = ctx.activation({x.x_.dim(0), x.x_.dim(1)});
    if (x.pending_.empty()) {
      ctx.kernels.rms_norm(y, x.x_, weight_, eps_);
    } else {
      ctx.kernels.add_rms_norm(y, x.x_, x.pending_, weight_, eps_);
      x.pending_ = {};
    }
    return y;
  }
  TensorView operator()(TensorView x, Context& ctx) const {
    const TensorView y = ctx.activation({x.dim(0), x.dim(1)});
    ctx.kernels.rms_norm(y, x, weight_, eps_);
    return y;
  }
  // For operations that normalise on the way.
  TensorView weight() const { return weight_; }
  float eps() const { return eps_; }

 private:
  Tensor weight_;
  float eps_;
};

}  // namespace minisgl
