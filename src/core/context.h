// What a model's forward pass may use: passed, never global.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>

#include "core/batch.h"
#include "tensor/tensor.h"
#include "utils/arena.h"

namespace minisgl {

class AttentionBackend;
class Kernels;

struct Context {
  Kernels& kernels;
  AttentionBackend& attention;
  Arena& arena;
  Batch& batch;
  DType activation_dtype = DType::kFloat32;

  // An activation that lives until the enclosing ArenaScope ends.
  TensorView allocate(DType dtype, std::initializer_list<int64_t> shape) {
    const TensorView sized(nullptr, dtype, shape, batch.input_ids.device());
    return TensorView(arena.allocate(sized.bytes()), dtype, shape, batch.input_ids.device());
  }
  TensorView activation(std::initializer_list<int64_t> shape) {
    return allocate(activation_dtype, shape);
  }

  // Where a sublayer (attention, MLP) puts its result [T, hidden_size]. Two buffers take turns, so
  // that a result outlives its layer's scope until the next norm has added it to the residual.
  std::array<TensorView, 2> block_outputs{};
  int next_block_output = 0;
  TensorView block_output() {
    next_block_output ^= 1;
    return block_outputs[static_cast<size_t>(next_block_output)];
  }
};

}  // namespace minisgl
