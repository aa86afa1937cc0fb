// What is particular to one layer's attention.
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace minisgl {

struct AttentionSpec {
  int layer = 0;
  int64_t num_qo_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  float scale = 1.0f;    // head_dim^-0.5 unless the model says otherwise
  float softcap = 0.0f;  // 0: none
  int64_t window = 0;    // last keys that a query sees, itself included; 0: all
  TensorView sinks;      // [Hq] float32, or empty
};

}  // namespace minisgl
