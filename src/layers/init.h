// What a layer's constructor is given: a path into the checkpoint, and where its weights go.
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel/kernels.h"
#include "loader/weights.h"

namespace minisgl {

// Which part of a weight a tensor-parallel rank keeps.
struct Shard {
  int rank = 0;
  int size = 1;
};
enum class Split {
  kNone,     // every rank keeps all of it
  kRows,     // outputs are shared out: q, k, v, gate, up
  kColumns,  // inputs are shared out: o, down; the ranks' results are summed
};

// Cheap to copy; `w / "self_attn" / "q_proj"` goes down the path.
class LayerInit {
 public:
  LayerInit(Weights weights, Kernels& kernels, DType dtype, Shard shard = {})
      : weights_(std::move(weights)), kernels_(&kernels), dtype_(dtype), shard_(shard) {}

  LayerInit operator/(std::string_view name) const {
    return LayerInit(weights_ / name, *kernels_, dtype_, shard_);
  }
  LayerInit operator/(int64_t index) const {
    return LayerInit(weights_ / index, *kernels_, dtype_, shard_);
  }

  // One weight of a merged matrix: `<path>.<name>.weight`, [rows, cols] over all ranks.
  struct Part {
    std::string_view name;
    int64_t rows;
    int64_t cols;
  };
  // The parts' shards under one another in the device's order.
  std::unique_ptr<PackedMatrix> packed(std::vector<Part> parts, Split split) const;
  // The parts' biases, `<path>.<name>.bias`, one after another as float32.
  Tensor biases(std::vector<Part> parts, Split split) const;
  // `<path>.<name>` as float32 [n].
  Tensor vector(std::string_view name, int64_t n) const;

  bool has(std::string_view name) const { return weights_.has(name); }
  Kernels& kernels() const { return *kernels_; }
  const Shard& shard() const { return shard_; }

 private:
  Weights weights_;
  Kernels* kernels_;
  DType dtype_;
  Shard shard_;
};

}  // namespace minisgl
