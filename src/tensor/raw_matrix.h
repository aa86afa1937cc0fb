// Weights as a checkpoint holds them, before a device packs them into its own order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tensor/dtype.h"

namespace minisgl {

// `rows` rows of `cols` elements, row-major, in any dtype (block formats too). Looks, never owns:
// good as long as the checkpoint it came from is open. A vector is a matrix of one row.
struct RawMatrix {
  DType dtype = DType::kFloat32;
  int64_t rows = 0;
  int64_t cols = 0;
  const std::byte* data = nullptr;
  // > 0: rows of each head of this many are stored interleaved (0, d/2, 1, d/2 + 1, …), as GGUF
  // files of the llama family keep q_proj and k_proj; row() undoes it.
  int64_t interleaved_head_dim = 0;
  int64_t row_stride_bytes = 0;  // from one stored row to the next; 0: row_bytes()

  int64_t row_bytes() const { return bytes_of(dtype, cols); }
  int64_t stride_bytes() const { return row_stride_bytes > 0 ? row_stride_bytes : row_bytes(); }

  const std::byte* row(int64_t r) const {
    if (interleaved_head_dim > 0) {
      const int64_t half = interleaved_head_dim / 2;
      const int64_t in_head = r % interleaved_head_dim;
      r += in_head % half * 2 + in_head / half - in_head;
    }
    return data + r * stride_bytes();
  }

  // Rows [begin, begin + count): a shard, or one expert of a stack.
  // With interleaved heads both must be multiples of the head dimension.
  RawMatrix slice_rows(int64_t begin, int64_t count) const {
    RawMatrix part = *this;
    part.rows = count;
    part.data += begin * stride_bytes();
    return part;
  }

  // Columns [begin, begin + count); both multiples of block_size(dtype).
  RawMatrix slice_columns(int64_t begin, int64_t count) const {
    RawMatrix part = *this;
    part.row_stride_bytes = stride_bytes();
    part.cols = count;
    part.data += bytes_of(dtype, begin);
    return part;
  }
};

}  // namespace minisgl
