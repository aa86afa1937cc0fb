// y = x W^T + bias over packed panels. Every output element is one chain of fused multiply-adds
// along K, started at 0, the bias added last: the same bits for one row and for many, whatever the
// rows beside it and the threads. With many rows the chain is kept in y between chunks of K.
#include "kernel/cpu/isa/panels.h"
#include "kernel/cpu/isa/tile.h"

namespace minisgl::cpu::MINISGL_ISA {
namespace {

// Output columns from `column` on of one panel: sums + bias, cut at the end of y.
MINISGL_INLINE void finish(const GemmArgs& args, float* y, vf sum, int64_t column) {
  const int64_t count = args.columns - column;
  if (count >= kLanes) {
    store(y + column, args.bias ? cpu::add(sum, load(args.bias + column)) : sum);
  } else if (count > 0) {
    const vf bias = args.bias ? load_n(args.bias + column, count) : zero();
    store_n(y + column, args.bias ? cpu::add(sum, bias) : sum, count);
  }
}

// Vectors of a panel at once: as many chains and scales as the registers hold.
#if defined(__AVX512F__)
constexpr int kGemvVectors = 2;
constexpr int kGemvPanels = 2;
#else
constexpr int kGemvVectors = 4;
constexpr int kGemvPanels = 1;
#endif

template <class Format, int kPanels>
void gemv_panels(const GemmArgs& args, int64_t panel) {
  const uint8_t* panels[kPanels];
  for (int p = 0; p < kPanels; ++p) panels[p] = args.panels + (panel + p) * args.panel_bytes;
  for (int column = 0; column < kPanel; column += kGemvVectors * kLanes) {
    vf sums[kPanels][kGemvVectors];
    for (auto& row : sums) {
      for (vf& sum : row) sum = zero();
    }
    Format::template walk<kPanels, kGemvVectors>(
        panels, column, args.cols, args.values,
        [&](int64_t k, int p, int v, vf w)
            MINISGL_INLINE_LAMBDA { sums[p][v] = fmadd(set1(args.x[k]), w, sums[p][v]); });
    for (int p = 0; p < kPanels; ++p) {
      for (int v = 0; v < kGemvVectors; ++v) {
        finish(args, args.y, sums[p][v], (panel + p) * kPanel + column + v * kLanes);
      }
    }
  }
}

// out: [num][kPanel], elements [begin, begin + num) of a panel's K; begin a multiple of kChunk
template <class Format>
void unpack(float* out, const GemmArgs& args, const uint8_t* panel, int64_t begin, int64_t num) {
  const uint8_t* panels[1] = {panel + begin / Format::kBlock * Format::kBytes};
  constexpr int kVectors = 2;
  for (int column = 0; column < kPanel; column += kVectors * kLanes) {
    Format::template walk<1, kVectors>(panels, column, num, args.values,
                                       [&](int64_t k, int, int v, vf w) MINISGL_INLINE_LAMBDA {
                                         store(out + k * kPanel + column + v * kLanes, w);
                                       });
  }
}

// The panel's weights for a chunk of K as float32: in place if they are, else unpacked.
MINISGL_INLINE const float* chunk_weights(const GemmArgs& args, const uint8_t* panel, int64_t begin,
                                          int64_t num, float* scratch) {
  if (args.layout == PanelLayout::kFloat32) {
    return reinterpret_cast<const float*>(panel) + begin * kPanel;
  }
  dispatch_layout(args.layout,
                  [&]<class Format>() { unpack<Format>(scratch, args, panel, begin, num); });
  return scratch;
}

// Tiles of rows of x for the chunk that starts at `begin`.
MINISGL_INLINE const float* chunk_rows(const GemmArgs& args, int64_t begin) {
  return args.x + begin / kChunk * args.rows * kTileStride + begin % kChunk;
}

MINISGL_INLINE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// Elements of K that are unpacked and multiplied at a time: little enough for L1 where few rows
// would not cover the way to L2 and back.
MINISGL_INLINE int64_t piece_size(const GemmArgs& args) {
  if (args.rows > 2 * kTileRows || args.layout == PanelLayout::kFloat32) return kChunk;
  bool small_blocks = true;
  dispatch_layout(args.layout, [&]<class Format>() { small_blocks = Format::kBlock <= 32; });
  return small_blocks ? 64 : kChunk;
}

void gemm_full_panel(const GemmArgs& args, const uint8_t* panel, int64_t column, float* scratch) {
  const int64_t piece = piece_size(args);
  // While a piece is multiplied, the next one may come: if there is enough to multiply for its
  // size.
  const bool prefetches = args.layout > PanelLayout::kHalf || args.rows > 2 * kTileRows;
  for (int64_t begin = 0; begin < args.cols; begin += piece) {
    const int64_t num = smaller(piece, args.cols - begin);
    const float* w = chunk_weights(args, panel, begin, num, scratch);
    const float* x = chunk_rows(args, begin);
    if (prefetches) {
      const uint8_t* next = panel + args.panel_bytes * (begin + num) / args.cols;
      const uint8_t* end = next + args.panel_bytes * num / args.cols;
      for (; next < end; next += 64) __builtin_prefetch(next);
    }
    for (int64_t r = 0; r < args.rows; r += kTileRows) {
      tile(smaller(kTileRows, args.rows - r), args.y + r * args.y_stride + column, args.y_stride,
           x + r * kTileStride, w, kPanel, num, begin == 0);
    }
  }
  if (args.bias == nullptr) return;
  for (int64_t r = 0; r < args.rows; ++r) {
    float* y = args.y + r * args.y_stride;
    for (int v = 0; v < kPanel; v += kLanes) finish(args, y, load(y + column + v), column + v);
  }
}

// The last panel, which reaches past the end of y's rows: sums are kept aside.
void gemm_short_panel(const GemmArgs& args, const uint8_t* panel, int64_t column, float* scratch) {
  float sums[kTileRows * kPanel];
  for (int64_t r = 0; r < args.rows; r += kTileRows) {
    const int64_t rows = smaller(kTileRows, args.rows - r);
    for (int64_t begin = 0; begin < args.cols; begin += kChunk) {
      const int64_t num = smaller(kChunk, args.cols - begin);
      const float* w = chunk_weights(args, panel, begin, num, scratch);
      tile(rows, sums, kPanel, chunk_rows(args, begin) + r * kTileStride, w, kPanel, num,
           begin == 0);
    }
    for (int64_t i = 0; i < rows; ++i) {
      float* y = args.y + (r + i) * args.y_stride;
      for (int v = 0; v < kPanel; v += kLanes) {
        finish(args, y, load(sums + i * kPanel + v), column + v);
      }
    }
  }
}

}  // namespace

void gemv(const GemmArgs& args, int64_t begin, int64_t end) {
  dispatch_layout(args.layout, [&]<class Format>() {
    int64_t panel = begin;
    for (; panel + kGemvPanels <= end; panel += kGemvPanels) {
      gemv_panels<Format, kGemvPanels>(args, panel);
    }
    for (; panel < end; ++panel) gemv_panels<Format, 1>(args, panel);
  });
}

void gemm(const GemmArgs& args, int64_t panel, float* scratch) {
  const uint8_t* data = args.panels + panel * args.panel_bytes;
  const int64_t column = panel * kPanel;
  if (column + kPanel <= args.columns) {
    gemm_full_panel(args, data, column, scratch);
  } else {
    gemm_short_panel(args, data, column, scratch);
  }
}

}  // namespace minisgl::cpu::MINISGL_ISA
