#include "kernel/cpu/moe.h"

#include <algorithm>
#include <cstring>

#include "kernel/checks.h"
#include "utils/error.h"

namespace minisgl::cpu {

const PanelMatrix& panels(const PackedMatrix& w) {
  const auto* matrix = dynamic_cast<const PanelMatrix*>(&w);
  MINISGL_CHECK(matrix != nullptr, "a matrix was packed by another device's kernels");
  return *matrix;
}

void Moe::route(TensorView experts, TensorView weights, TensorView logits, bool normalize) {
  checks::moe_route(experts, weights, logits);
  const int64_t num_experts = logits.dim(1);
  const int64_t top_k = weights.dim(1);
  const int64_t tokens = logits.dim(0);
  float* all_probs = probs_.floats(tokens * num_experts);
  team_.for_rows(tokens, num_experts * (top_k + 8), [&](int64_t t) {
    const float* row = logits.data<float>() + t * logits.stride(0);
    float* probs = all_probs + t * num_experts;
    table_.exp_shifted(probs, row, *std::max_element(row, row + num_experts), num_experts);
    float sum = 0.0f;
    for (int64_t e = 0; e < num_experts; ++e) sum += probs[e];
    for (int64_t e = 0; e < num_experts; ++e) probs[e] /= sum;

    float* chosen = weights.data<float>() + t * weights.stride(0);
    int32_t* ids = experts.data<int32_t>() + t * experts.stride(0);
    float total = 0.0f;
    for (int64_t i = 0; i < top_k; ++i) {
      const float* best = std::max_element(probs, probs + num_experts);
      ids[i] = static_cast<int32_t>(best - probs);
      chosen[i] = *best;
      total += *best;
      probs[ids[i]] = -1.0f;
    }
    if (!normalize) return;
    for (int64_t i = 0; i < top_k; ++i) chosen[i] /= total;
  });
}

void Moe::group_by_expert(TensorView experts, int64_t num_experts) {
  const int64_t top_k = experts.dim(1);
  const int64_t n = experts.dim(0) * top_k;
  const auto expert = [&](int64_t choice) {
    return experts.data<int32_t>()[choice / top_k * experts.stride(0) + choice % top_k];
  };
  begins_.assign(static_cast<size_t>(num_experts) + 1, 0);
  for (int64_t c = 0; c < n; ++c) {
    checks::index_below("moe_mlp", expert(c), num_experts);
    ++begins_[static_cast<size_t>(expert(c)) + 1];
  }
  for (size_t e = 1; e < begins_.size(); ++e) begins_[e] += begins_[e - 1];
  choices_.resize(static_cast<size_t>(n));
  places_.resize(static_cast<size_t>(n));
  // Counting sort, stable; begins_ ends up shifted by one expert and is shifted back.
  for (int64_t c = 0; c < n; ++c) {
    const int64_t place = begins_[static_cast<size_t>(expert(c))]++;
    choices_[static_cast<size_t>(place)] = c;
    places_[static_cast<size_t>(c)] = place;
  }
  std::copy_backward(begins_.begin(), begins_.end() - 1, begins_.end());
  begins_[0] = 0;
}

void Moe::mlp(TensorView y, TensorView x, TensorView experts, TensorView weights,
              std::span<const std::unique_ptr<PackedMatrix>> gate_up,
              std::span<const std::unique_ptr<PackedMatrix>> down, Arena& arena) {
  checks::moe_mlp(y, x, experts, weights, gate_up, down);
  const int64_t hidden = x.dim(1);
  const int64_t intermediate = down[0]->cols();
  const int64_t top_k = experts.dim(1);
  group_by_expert(experts, static_cast<int64_t>(down.size()));

  const ArenaScope scope(arena);
  const auto scratch = [&arena](int64_t rows, int64_t cols) {
    return static_cast<float*>(arena.allocate(rows * cols * int64_t{sizeof(float)}));
  };
  float* out = scratch(x.dim(0) * top_k, hidden);  // of all choices, in order of experts
  for (size_t e = 0; e < down.size(); ++e) {
    const int64_t begin = begins_[e];
    const int64_t n = begins_[e + 1] - begin;
    if (n == 0) continue;
    const ArenaScope expert_scope(arena);
    float* rows = scratch(n, hidden);
    float* both = scratch(n, 2 * intermediate);
    float* activated = scratch(n, intermediate);
    team_.for_rows(n, hidden, [&](int64_t i) {
      const int64_t token = choices_[static_cast<size_t>(begin + i)] / top_k;
      std::memcpy(rows + i * hidden, x.data<float>() + token * x.stride(0),
                  static_cast<size_t>(hidden) * sizeof(float));
    });
    gemm_(both, 2 * intermediate, rows, hidden, n, panels(*gate_up[e]), nullptr);
    team_.for_rows(n, 8 * intermediate, [&](int64_t i) {
      const float* gate = both + i * 2 * intermediate;
      table_.silu_mul(activated + i * intermediate, gate, gate + intermediate, intermediate);
    });
    gemm_(out + begin * hidden, hidden, activated, intermediate, n, panels(*down[e]), nullptr);
  }
  team_.for_rows(x.dim(0), hidden * top_k, [&](int64_t t) {
    float* row = y.data<float>() + t * y.stride(0);
    std::fill_n(row, hidden, 0.0f);
    for (int64_t i = 0; i < top_k; ++i) {
      table_.add_scaled(row, out + places_[static_cast<size_t>(t * top_k + i)] * hidden,
                        weights.data<float>()[t * weights.stride(0) + i], hidden);
    }
  });
}

}  // namespace minisgl::cpu
