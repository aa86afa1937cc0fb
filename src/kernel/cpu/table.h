// What each instruction set implements: plain functions on raw memory, float32 unless said
// otherwise. The sources in cpu/isa/ are compiled once per instruction set, each time into a
// namespace of its own, and fill one table. Nothing here is inline: see isa/vec.h.
#pragma once

#include <stdint.h>

namespace minisgl::cpu {

// Weights are packed in panels of kPanel rows of W, that is output columns; a short last panel is
// filled with zeros. Lanes run over the panel, K in order.
constexpr int kPanel = 32;
// K elements that the row kernels keep in a cache, and the room that one row of x takes in a tile.
constexpr int kChunk = 256;
constexpr int kTileStride = kChunk + 16;  // not a power of two: rows must not share cache sets
constexpr int kMaxTileRows = 12;

// How one panel stores its weights. Blocks follow each other along K:
//   plain      K x [32] float32, bfloat16 or half bits
//   quantised  block of 32 elements of K, or of 256 ("super", as GGUF's K formats are):
//                scale [32] half, or bfloat16, bits; for formats with a minimum: minimum [32]
//                super only: the groups' factors, [groups][32] int8, and the minima's, likewise
//                codes: 4 bits: [K / 8][32] uint32, element 8 i + j in bits 4 j … 4 j + 3,
//                       8 bits: [K][32] int8
// w = scale * value + minimum, where value is the 8-bit code itself, or values[4-bit code]; of a
// super block scale is the block's times the group's factor.
enum class PanelLayout : uint8_t {
  kFloat32,
  kBFloat16,
  kHalf,
  k4,            // Q4_0, IQ4_NL
  k4Min,         // Q4_1
  k4BFloat16,    // MXFP4
  k4Super16,     // Q3_K
  k4Super16Min,  // Q2_K
  k4Super32,     // IQ4_XS
  k4Super32Min,  // Q4_K
  k8,            // Q8_0, Q5_0
  k8Min,         // Q5_1
  k8Super16,     // Q6_K
  k8Super32Min,  // Q5_K
};

// y[0 … rows) = x W^T + bias for panels of W.
struct GemmArgs {
  PanelLayout layout;
  const float* values;    // [16], for 4-bit layouts
  const uint8_t* panels;  // 64-byte aligned
  int64_t panel_bytes;
  int64_t cols;       // K
  int64_t columns;    // of y that the panels stand for (the last panel may be short)
  const float* bias;  // [columns], or null
  float* y;
  int64_t y_stride;
  int64_t rows;
  // One row: x itself. More: tiles, [chunk of K][tile][row in tile][kTileStride], see pack_rows.
  const float* x;
};

// One key-value head of one request, and some of its queries. Rows are pairs (token, head of the
// group), in that order.
struct AttentionArgs {
  float* out;
  const float* q;
  int64_t q_token_stride, q_head_stride, out_token_stride, out_head_stride;
  int64_t tokens, group, dim;
  int64_t first_position;  // of the first token; the others follow
  const void* k;           // pools, at this key-value head
  const void* v;
  int kv_type;                 // 0 float32, 1 bfloat16, 2 half
  int64_t k_stride, v_stride;  // elements from location to location
  const int32_t* pages;        // locations of positions 0 …
  const float* sinks;          // [group], or null
  float* lse;                  // [tokens][lse_stride], at this group's first head, or null
  int64_t lse_stride;
  float scale, softcap;
  int64_t window;
  float* scratch;  // attention_scratch_floats()
};

struct Table {
  const char* isa;
  int tile_rows;  // rows of x that the matrix kernel computes at once

  // ---- matrices ----
  // One row of x against panels [begin, end).
  void (*gemv)(const GemmArgs& args, int64_t begin, int64_t end);
  // Any number of rows against one panel. scratch: [kChunk][kPanel], private to the caller.
  void (*gemm)(const GemmArgs& args, int64_t panel, float* scratch);

  // ---- rows ----
  void (*rms_norm)(float* y, const float* x, const float* w, int64_t n, float eps);
  void (*add_rms_norm)(float* y, float* x, const float* addend, const float* w, int64_t n,
                       float eps);
  void (*add)(float* x, const float* addend, int64_t n);
  void (*rope)(float* head, const float* cosines, const float* sines, int64_t half);
  void (*silu_mul)(float* y, const float* gate, const float* up, int64_t n);
  void (*gelu_mul)(float* y, const float* gate, const float* up, int64_t n);
  void (*softcap)(float* x, float cap, int64_t n);
  void (*to_bf16)(uint16_t* y, const float* x, int64_t n);
  void (*to_half)(uint16_t* y, const float* x, int64_t n);
  // y += factor * x
  void (*add_scaled)(float* y, const float* x, float factor, int64_t n);
  int64_t (*argmax)(const float* x, int64_t n);
  // y[i] = e^(x[i] - shift)
  void (*exp_shifted)(float* y, const float* x, float shift, int64_t n);

  // ---- attention ----
  void (*attention)(const AttentionArgs& args);
};

}  // namespace minisgl::cpu
