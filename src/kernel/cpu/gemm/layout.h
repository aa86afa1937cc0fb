// Sizes of the panels of table.h, and which layout each dtype of a checkpoint becomes.
#pragma once

#include <cstdint>

#include "kernel/cpu/table.h"
#include "tensor/dtype.h"

namespace minisgl::cpu {

// Where things lie in one block of a panel; offsets in bytes.
struct PanelShape {
  int bits;        // of a code; 16 and 32 for plain weights
  int64_t block;   // elements of K in a block: 1, 32 or 256
  int64_t groups;  // of a super block; 1 otherwise
  bool has_min;
  int64_t factors_at;  // super blocks: the groups' factors,
  int64_t minima_at;   // and those of the minima
  int64_t codes_at;
  int64_t block_bytes;
  bool is_super() const { return groups > 1; }
};
PanelShape panel_shape(PanelLayout layout);

// The layout that keeps weights of `source` exactly, or, of plain ones, as pack()'s `dtype`:
// 16-bit weights are kept as they are where `dtype` is float32.
PanelLayout panel_layout(DType source, DType dtype);
// What the 4-bit codes of a dtype stand for: [16]; null for other dtypes.
const float* code_values(DType source);

}  // namespace minisgl::cpu
