#include "kernel/cpu/gemm/gemm.h"

#include <algorithm>
#include <cstring>

namespace minisgl::cpu {
namespace {

// Rows whose tiles are worked on at once: K = 1024 of them are about 3 MB.
constexpr int64_t kRowBlock = 768;

GemmArgs segment_args(const PanelSegment& segment, float* y, int64_t y_stride, int64_t rows,
                      const PanelMatrix& w, const float* bias) {
  GemmArgs args{};
  args.layout = segment.layout;
  args.values = segment.values;
  args.panels = segment.panels;
  args.panel_bytes = segment.panel_bytes;
  args.cols = w.cols();
  args.columns = segment.rows;
  args.bias = bias == nullptr ? nullptr : bias + segment.first_row;
  args.y = y + segment.first_row;
  args.y_stride = y_stride;
  args.rows = rows;
  return args;
}

}  // namespace

void Gemm::operator()(float* y, int64_t y_stride, const float* x, int64_t x_stride, int64_t rows,
                      const PanelMatrix& w, const float* bias) {
  if (rows == 1) return one_row(y, x, w, bias);
  // Blocks of equal size, whole tiles.
  const int64_t num_blocks = std::max<int64_t>(1, div_ceil(rows, kRowBlock));
  const int64_t block = align_up(div_ceil(rows, num_blocks), table_.tile_rows);
  for (int64_t r = 0; r < rows; r += block) {
    some_rows(y + r * y_stride, y_stride, x + r * x_stride, x_stride, std::min(block, rows - r), w,
              bias);
  }
}

void Gemm::one_row(float* y, const float* x, const PanelMatrix& w, const float* bias) {
  for (const PanelSegment& segment : w.segments()) {
    GemmArgs args = segment_args(segment, y, 0, 1, w, bias);
    args.x = x;
    const int64_t panels = segment.num_panels();
    // An even number, since the kernel takes two panels at a time; small enough to share fairly.
    const int64_t per_task = std::clamp<int64_t>(align_down(panels / (4 * team_.size()), 2), 2, 16);
    team_.threads().parallel_for(div_ceil(panels, per_task), [&](int64_t task) {
      table_.gemv(args, task * per_task, std::min(panels, (task + 1) * per_task));
    });
  }
}

void Gemm::some_rows(float* y, int64_t y_stride, const float* x, int64_t x_stride, int64_t rows,
                     const PanelMatrix& w, const float* bias) {
  const int64_t cols = w.cols();
  const int64_t chunks = div_ceil(cols, kChunk);
  float* tiles = tiles_.floats(chunks * rows * kTileStride);
  team_.for_rows(rows, cols / 4, [&](int64_t r) {
    for (int64_t c = 0; c < chunks; ++c) {
      std::memcpy(
          tiles + (c * rows + r) * kTileStride, x + r * x_stride + c * kChunk,
          static_cast<size_t>(std::min<int64_t>(kChunk, cols - c * kChunk)) * sizeof(float));
    }
  });
  for (const PanelSegment& segment : w.segments()) {
    GemmArgs args = segment_args(segment, y, y_stride, rows, w, bias);
    args.x = tiles;
    team_.threads().parallel_for(segment.num_panels(), [&](int64_t panel) {
      alignas(64) float scratch[kChunk * kPanel];
      table_.gemm(args, panel, scratch);
    });
  }
}

}  // namespace minisgl::cpu
