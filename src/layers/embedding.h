// Token ids to vectors, and vectors to logits.
#pragma once

#include <memory>
#include <string_view>

#include "core/context.h"
#include "kernel/kernels.h"
#include "layers/init.h"

namespace minisgl {

class Embedding {
 public:
  Embedding(const LayerInit& w, std::string_view name, int64_t vocab_size, int64_t hidden_size)
      : table_(w.packed({{name, vocab_size, hidden_size}}, Split::kNone)) {}

  // ids: [T] -> [T, H]
  TensorView operator()(TensorView ids, Context& ctx) const {
    const TensorView out = ctx.activation({ids.dim(0), table_->cols()});
    ctx.kernels.embedding(out, ids, *table_);
    return out;
  }
  std::shared_ptr<const PackedMatrix> table() const { return table_; }

 private:
  // Shared with a tied LM head: both need it, and either may outlive the other.
  std::shared_ptr<const PackedMatrix> table_;
};

// The LM head; only the rows that are asked for. Logits are float32.
class LMHead {
 public:
  // A tied head reads the embedding's table; an lm_head.weight in the checkpoint is not used then.
  LMHead(const LayerInit& w, const Embedding& embedding, bool tied)
      : weight_(tied ? embedding.table()
                     : std::shared_ptr<const PackedMatrix>(w.packed(
                           {{"lm_head", embedding.table()->rows(), embedding.table()->cols()}},
                           Split::kNone))) {}

  // x: [n, H] -> [n, V]
  TensorView operator()(TensorView x, Context& ctx) const {
    const TensorView logits = ctx.allocate(DType::kFloat32, {x.dim(0), weight_->rows()});
    ctx.kernels.linear(logits, x, *weight_, {});
    return logits;
  }

 private:
  std::shared_ptr<const PackedMatrix> weight_;
};

}  // namespace minisgl
