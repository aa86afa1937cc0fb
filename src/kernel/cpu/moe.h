// Mixture of experts: routing, and the experts' MLPs over the tokens that chose them.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "kernel/cpu/gemm/gemm.h"
#include "kernel/kernels.h"
#include "utils/arena.h"

namespace minisgl::cpu {

class Moe {
 public:
  Moe(const Table& table, const Team& team, Gemm& gemm) : table_(table), team_(team), gemm_(gemm) {}
  void route(TensorView experts, TensorView weights, TensorView logits, bool normalize);
  void mlp(TensorView y, TensorView x, TensorView experts, TensorView weights,
           std::span<const std::unique_ptr<PackedMatrix>> gate_up,
           std::span<const std::unique_ptr<PackedMatrix>> down, Arena& arena);

 private:
  void group_by_expert(TensorView experts, int64_t num_experts);

  const Table& table_;
  const Team& team_;
  Gemm& gemm_;
  Scratch probs_;
  // The choices (t, i), as t * k + i, in order of their experts; where each expert's begin; and
  // where each choice stands.
  std::vector<int64_t> choices_;
  std::vector<int64_t> begins_;
  std::vector<int64_t> places_;
};

// The CPU's own matrix type; an internal error for another's.
const PanelMatrix& panels(const PackedMatrix& w);

}  // namespace minisgl::cpu
