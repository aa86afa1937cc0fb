// Block formats of GGUF files back to float32, bit for bit as their definition says.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace minisgl {

// out[i] = the value of element i of `in`
// in: n elements as the file holds them, no alignment needed; n a multiple of block_size(dtype).
// out: [n], apart from `in`. Every product and sum is rounded once, in the order that defines the
// format: no fused multiply-add, so that any machine gives the same bits.
// dtype: float32, float16, bfloat16 and every block format; others are kUnsupported. Thread-safe.
void dequantize(float* out, const std::byte* in, DType dtype, int64_t n);

}  // namespace minisgl
