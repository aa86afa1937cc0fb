// linear() over panels: three regimes, one arithmetic.
//   1 row       the weights stream past it once
//   more        rows are laid out in tiles; each panel's chunk of K is unpacked once for all of
//   them very many   the same in blocks of rows, so that the tiles stay in a cache
#pragma once

#include "kernel/cpu/gemm/panel_matrix.h"
#include "kernel/cpu/scratch.h"
#include "kernel/cpu/team.h"

namespace minisgl::cpu {

class Gemm {
 public:
  Gemm(const Table& table, const Team& team) : table_(table), team_(team) {}
  // y: [M, N], x: [M, K], rows may be strided; bias: [N] or null
  void operator()(float* y, int64_t y_stride, const float* x, int64_t x_stride, int64_t rows,
                  const PanelMatrix& w, const float* bias);

 private:
  void one_row(float* y, const float* x, const PanelMatrix& w, const float* bias);
  void some_rows(float* y, int64_t y_stride, const float* x, int64_t x_stride, int64_t rows,
                 const PanelMatrix& w, const float* bias);

  const Table& table_;
  const Team& team_;
  Scratch tiles_;
};

}  // namespace minisgl::cpu
