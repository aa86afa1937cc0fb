// Memory that an object owns for its calls: grown when a call needs more, never given back.
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace minisgl::cpu {

class Scratch {
 public:
  // At least n floats, 64-byte aligned; contents are undefined. Earlier pointers end when it grows.
  float* floats(int64_t n) {
    if (n > capacity_) {
      capacity_ = n + n / 2;
      memory_ = Tensor();
      memory_ = Tensor::zeros(DType::kFloat32, {capacity_});
    }
    return capacity_ == 0 ? nullptr : memory_.view().data<float>();
  }

 private:
  Tensor memory_;
  int64_t capacity_ = 0;
};

}  // namespace minisgl::cpu
