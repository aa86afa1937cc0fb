// GGUF blocks taken apart into codes, scales and minima, for the packing of quantised weights.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace minisgl::cpu {

// w[i] = scale * factor[i / group] * value(codes[i]) + minimum * min_factor[i / group], exactly.
// Formats without groups have no factors.
struct BlockParts {
  uint8_t codes[256];    // 4-bit codes, or int8 values
  uint16_t scale = 0;    // bits of a half; of a bfloat16 for MXFP4
  uint16_t minimum = 0;  // bits of a half
  int8_t factors[16];
  int8_t min_factors[16];  // negated where the format subtracts its minimum
};

// One block of a block format. Thread-safe.
void split_block(BlockParts& parts, const std::byte* block, DType dtype);

}  // namespace minisgl::cpu
