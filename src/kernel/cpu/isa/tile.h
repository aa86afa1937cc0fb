// The register-blocked core: up to kTileRows rows times one panel.
#pragma once

#include "kernel/cpu/isa/isa.h"

namespace minisgl::cpu::MINISGL_ISA {
namespace {

// Columns that a tile's accumulators cover: two vectors a row, so 32 with AVX-512, 16 with AVX2.
constexpr int kTileColumns = 2 * kLanes;

// c[r, 0 … kTileColumns) = (first ? 0 : c) + sum over k of a[r, k] b[k, …], k in order
// a: [kRows][kTileStride], b: [num][b_stride]
template <int kRows>
MINISGL_INLINE void tile_columns(float* c, int64_t c_stride, const float* a, const float* b,
                                 int64_t b_stride, int64_t num, bool first) {
  vf sums[kRows][2];
  for (int r = 0; r < kRows; ++r) {
    sums[r][0] = first ? zero() : load(c + r * c_stride);
    sums[r][1] = first ? zero() : load(c + r * c_stride + kLanes);
  }
  for (int64_t k = 0; k < num; ++k, b += b_stride) {
    const vf b0 = load(b);
    const vf b1 = load(b + kLanes);
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const vf x = set1(a[r * kTileStride + k]);
      sums[r][0] = fmadd(x, b0, sums[r][0]);
      sums[r][1] = fmadd(x, b1, sums[r][1]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    store(c + r * c_stride, sums[r][0]);
    store(c + r * c_stride + kLanes, sums[r][1]);
  }
}

template <int kRows>
void tile_rows(float* c, int64_t c_stride, const float* a, const float* b, int64_t b_stride,
               int64_t num, bool first) {
  for (int column = 0; column < kPanel; column += kTileColumns) {
    tile_columns<kRows>(c + column, c_stride, a, b + column, b_stride, num, first);
  }
}

// c[0 … rows, 0 … kPanel) of 1 … kTileRows rows
MINISGL_INLINE void tile(int64_t rows, float* c, int64_t c_stride, const float* a, const float* b,
                         int64_t b_stride, int64_t num, bool first) {
  switch (rows) {
    case 1:
      return tile_rows<1>(c, c_stride, a, b, b_stride, num, first);
    case 2:
      return tile_rows<2>(c, c_stride, a, b, b_stride, num, first);
    case 3:
      return tile_rows<3>(c, c_stride, a, b, b_stride, num, first);
    case 4:
      return tile_rows<4>(c, c_stride, a, b, b_stride, num, first);
    case 5:
      return tile_rows<5>(c, c_stride, a, b, b_stride, num, first);
    case 6:
      return tile_rows<6>(c, c_stride, a, b, b_stride, num, first);
#if defined(__AVX512F__)
    case 7:
      return tile_rows<7>(c, c_stride, a, b, b_stride, num, first);
    case 8:
      return tile_rows<8>(c, c_stride, a, b, b_stride, num, first);
    case 9:
      return tile_rows<9>(c, c_stride, a, b, b_stride, num, first);
    case 10:
      return tile_rows<10>(c, c_stride, a, b, b_stride, num, first);
    case 11:
      return tile_rows<11>(c, c_stride, a, b, b_stride, num, first);
    case 12:
      return tile_rows<12>(c, c_stride, a, b, b_stride, num, first);
#endif
  }
}

}  // namespace
}  // namespace minisgl::cpu::MINISGL_ISA
