// Paged attention, flash-style (Dao et al. 2022; Milakov & Gimelshein 2018): blocks of 32 keys at
// fixed positions, scores and sums as small matrix products, softmax with a running maximum.
//
// A block's keys are transposed to float32 once for all rows (queries x heads of the group). What
// a row computes depends on its own query and keys only: blocks start at multiples of 32 of the
// position, whatever the page size, chunk or neighbours; keys that it must not see weigh 0.
#include "kernel/cpu/isa/tile.h"

namespace minisgl::cpu::MINISGL_ISA {
namespace {

constexpr int64_t kKeys = kPanel;
// A score of 4000 is off by 1e-3 in float32, and its weight by as much: rows whose maximum is
// beyond this have their scores computed again in double, and only their distance from it rounded.
constexpr float kLargeScore = 256.0f;
constexpr float kNoWeight = -104.0f;  // exp() of less is 0
constexpr float kMasked = -1e30f;     // below any score; finite, so that differences are numbers

MINISGL_INLINE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
MINISGL_INLINE int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
MINISGL_INLINE int64_t round_up(int64_t a, int64_t b) { return (a + b - 1) / b * b; }

// The caller's scratch, cut up. rows: all of the call's; chunks, columns: of the head dimension.
struct Scratch {
  float* q;       // [chunks of dim][rows][kTileStride]
  float* out;     // [rows][columns]
  float* max;     // [rows]
  float* sum;     // [rows]
  float* keys;    // [columns][kKeys]: transposed
  float* values;  // [kKeys][columns]
  float* scores;  // [kTileRows][kKeys]
  float* probs;   // [kTileRows][kTileStride]
  int64_t columns;

  Scratch(const AttentionArgs& args) : columns(round_up(args.dim, kPanel)) {
    const int64_t rows = args.tokens * args.group;
    float* at = args.scratch;
    const auto take = [&at](int64_t n) {
      float* p = at;
      at += round_up(n, 16);
      return p;
    };
    q = take(round_up(args.dim, kChunk) / kChunk * rows * kTileStride);
    out = take(rows * columns);
    max = take(rows);
    sum = take(rows);
    keys = take(columns * kKeys);
    values = take(kKeys * columns);
    scores = take(kTileRows * kKeys);
    probs = take(kTileRows * kTileStride);
  }
};

MINISGL_INLINE void load_row(float* out, const void* pool, int type, int64_t at, int64_t n) {
  int64_t i = 0;
  if (type == 0) {
    const float* p = static_cast<const float*>(pool) + at;
    for (; i + kLanes <= n; i += kLanes) store(out + i, load(p + i));
    if (i < n) store_n(out + i, load_n(p + i, n - i), n - i);
    return;
  }
  const uint16_t* p = static_cast<const uint16_t*>(pool) + at;
  if (type == 1) {
    for (; i + kLanes <= n; i += kLanes) store(out + i, load_bf16(p + i));
  } else {
    for (; i + kLanes <= n; i += kLanes) store(out + i, load_half(p + i));
  }
  if (i < n) {
    uint16_t rest[kLanes] = {};
    memcpy(rest, p + i, static_cast<size_t>(n - i) * sizeof(uint16_t));
    store_n(out + i, type == 1 ? load_bf16(rest) : load_half(rest), n - i);
  }
}

// Keys [first, first + count) of the request, transposed; values as they are; 0 beyond `count`.
void load_block(const AttentionArgs& args, const Scratch& s, int64_t first, int64_t count) {
  const int64_t columns = s.columns;
  // The values' room holds the keys while they are turned.
  for (int64_t j = 0; j < kKeys; ++j) {
    float* row = s.values + j * columns;
    memset(row, 0, static_cast<size_t>(columns) * sizeof(float));
    if (j < count)
      load_row(row, args.k, args.kv_type, args.pages[first + j] * args.k_stride, args.dim);
  }
  for (int64_t j = 0; j < kKeys; j += kLanes) {
    for (int64_t d = 0; d < columns; d += kLanes) {
      vf block[kLanes];
      for (int i = 0; i < kLanes; ++i) block[i] = load(s.values + (j + i) * columns + d);
      transpose(block);
      for (int i = 0; i < kLanes; ++i) store(s.keys + (d + i) * kKeys + j, block[i]);
    }
  }
  for (int64_t j = 0; j < kKeys; ++j) {
    float* row = s.values + j * columns;
    if (j < count) {
      load_row(row, args.v, args.kv_type, args.pages[first + j] * args.v_stride, args.dim);
    } else {
      memset(row, 0, static_cast<size_t>(args.dim) * sizeof(float));
    }
  }
}

void load_queries(const AttentionArgs& args, const Scratch& s) {
  const int64_t rows = args.tokens * args.group;
  for (int64_t r = 0; r < rows; ++r) {
    const float* q =
        args.q + r / args.group * args.q_token_stride + r % args.group * args.q_head_stride;
    for (int64_t d = 0; d < args.dim; d += kChunk) {
      memcpy(s.q + (d / kChunk * rows + r) * kTileStride, q + d,
             static_cast<size_t>(smaller(kChunk, args.dim - d)) * sizeof(float));
    }
    memset(s.out + r * s.columns, 0, static_cast<size_t>(s.columns) * sizeof(float));
    s.max[r] = kMasked;
    s.sum[r] = 0.0f;
  }
}

// A row's scores of the block minus `top`; keys outside [low, high) are masked.
__attribute__((noinline)) void exact_differences(const AttentionArgs& args, const Scratch& s,
                                                 int64_t row, float top, int64_t low, int64_t high,
                                                 float* differences) {
  const int64_t rows = args.tokens * args.group;
  double dots[kKeys] = {};
  for (int64_t d = 0; d < args.dim; ++d) {
    const double q = s.q[(d / kChunk * rows + row) * kTileStride + d % kChunk];
    for (int64_t j = 0; j < kKeys; ++j) dots[j] += q * s.keys[d * kKeys + j];
  }
  for (int64_t j = 0; j < kKeys; ++j) {
    const bool seen = low <= j && j < high;
    differences[j] = seen ? static_cast<float>(args.scale * dots[j] - top) : kMasked;
  }
}

// One row's step of the running softmax: scores to probs; rescales what the row has so far.
// Keys [low, high) of the block are seen.
MINISGL_INLINE void softmax_step(const AttentionArgs& args, const Scratch& s, int64_t row,
                                 const float* scores, float* probs, int64_t low, int64_t high) {
  constexpr int kVectors = kKeys / kLanes;
  vf x[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    x[v] = mul(load(scores + v * kLanes), set1(args.scale));
    if (args.softcap > 0) {
      const vf cap = set1(args.softcap);
      x[v] = mul(cap, tanh(div(x[v], cap)));
    }
  }
  if (low > 0 || high < kKeys) {
    float masked[kKeys];
    for (int v = 0; v < kVectors; ++v) store(masked + v * kLanes, x[v]);
    for (int64_t j = 0; j < kKeys; ++j) {
      if (j < low || j >= high) masked[j] = kMasked;
    }
    for (int v = 0; v < kVectors; ++v) x[v] = load(masked + v * kLanes);
  }
  vf block_top = set1(kMasked);
  for (int v = 0; v < kVectors; ++v) block_top = max(x[v], block_top);
  const float block_max = max_lanes(block_top);
  const float new_max = block_max > s.max[row] ? block_max : s.max[row];
  const bool large = new_max > kLargeScore || (new_max < -kLargeScore && new_max > kMasked);
  if (large && args.softcap <= 0 && block_max - new_max > kNoWeight) {
    float differences[kKeys];
    exact_differences(args, s, row, new_max, low, high, differences);
    for (int v = 0; v < kVectors; ++v) x[v] = load(differences + v * kLanes);
  } else {
    for (int v = 0; v < kVectors; ++v) {
      x[v] = select(less(set1(kMasked), x[v]), sub(x[v], set1(new_max)), set1(kMasked));
    }
  }
  vf total = zero();
  for (int v = 0; v < kVectors; ++v) {
    const vf p = select(less(set1(kMasked), x[v]), exp(x[v]), zero());
    store(probs + v * kLanes, p);
    total = cpu::add(total, p);
  }
  if (new_max != s.max[row]) {
    const vf factor = exp(set1(s.max[row] - new_max));
    float one[kLanes];
    store(one, factor);
    s.sum[row] *= one[0];
    for (int64_t d = 0; d < s.columns; d += kLanes) {
      float* out = s.out + row * s.columns + d;
      store(out, mul(load(out), factor));
    }
    s.max[row] = new_max;
  }
  s.sum[row] += sum_lanes(total);
}

// Rows [begin, begin + rows) meet the block of keys at `first`.
void attend_tile(const AttentionArgs& args, const Scratch& s, int64_t begin, int64_t rows,
                 int64_t first) {
  const int64_t all_rows = args.tokens * args.group;
  for (int64_t d = 0; d < args.dim; d += kChunk) {
    tile(rows, s.scores, kKeys, s.q + (d / kChunk * all_rows + begin) * kTileStride,
         s.keys + d * kKeys, kKeys, smaller(kChunk, args.dim - d), d == 0);
  }
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t position = args.first_position + (begin + i) / args.group;
    const int64_t oldest = args.window > 0 ? position - args.window + 1 : 0;
    const int64_t low = larger(0, oldest - first);
    const int64_t high = smaller(kKeys, position + 1 - first);
    softmax_step(args, s, begin + i, s.scores + i * kKeys, s.probs + i * kTileStride, low, high);
  }
  for (int64_t d = 0; d < s.columns; d += kPanel) {
    tile(rows, s.out + begin * s.columns + d, s.columns, s.probs, s.values + d, s.columns, kKeys,
         false);
  }
}

float exp_of(float x) {
  float lanes[kLanes];
  store(lanes, exp(set1(x)));
  return lanes[0];
}

// Divides by the denominator, in which a sink counts too.
void finish_row(const AttentionArgs& args, const Scratch& s, int64_t row) {
  const int64_t token = row / args.group;
  const int64_t head = row % args.group;
  float top = s.max[row];
  float sum = s.sum[row];
  float factor = 1.0f;
  if (args.sinks != nullptr) {
    const float sink = args.sinks[head];
    const float new_top = sink > top ? sink : top;
    factor = exp_of(top - new_top);
    sum = sum * factor + exp_of(sink - new_top);
    top = new_top;
  }
  float* out = args.out + token * args.out_token_stride + head * args.out_head_stride;
  const vf scale = set1(factor / sum);
  const float* from = s.out + row * s.columns;
  int64_t d = 0;
  for (; d + kLanes <= args.dim; d += kLanes) store(out + d, mul(load(from + d), scale));
  if (d < args.dim) store_n(out + d, mul(load(from + d), scale), args.dim - d);
  if (args.lse != nullptr) {
    args.lse[token * args.lse_stride + head] = top + __builtin_logf(sum);
  }
}

}  // namespace

void attention(const AttentionArgs& args) {
  const Scratch s(args);
  const int64_t rows = args.tokens * args.group;
  load_queries(args, s);
  const int64_t last = args.first_position + args.tokens - 1;
  const int64_t oldest =
      args.window > 0 ? larger(0, args.first_position - args.window + 1) : int64_t{0};
  for (int64_t first = oldest / kKeys * kKeys; first <= last; first += kKeys) {
    load_block(args, s, first, smaller(kKeys, last + 1 - first));
    for (int64_t begin = 0; begin < rows; begin += kTileRows) {
      const int64_t count = smaller(kTileRows, rows - begin);
      // Tiles of which no row sees the block are left out; so is nothing else.
      const int64_t tile_first = args.first_position + begin / args.group;
      const int64_t tile_last = args.first_position + (begin + count - 1) / args.group;
      const bool too_new = first > tile_last;
      const bool too_old = args.window > 0 && first + kKeys <= tile_first - args.window + 1;
      if (!too_new && !too_old) attend_tile(args, s, begin, count, first);
    }
  }
  for (int64_t r = 0; r < rows; ++r) finish_row(args, s, r);
}

}  // namespace minisgl::cpu::MINISGL_ISA
