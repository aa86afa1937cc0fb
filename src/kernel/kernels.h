// The operations of a transformer, by equation. A Kernels object is one device's implementation of
// them: the plain reference (the truth for tests), the CPU's per instruction set, CUDA's plugin.
//
// Letters: T tokens, bs requests, H hidden_size, Hq / Hkv query / KV heads, D head_dim, I
// intermediate_size, V vocab_size, N x K rows x columns of a weight.
// Outputs come first. Activations are float32 on the CPU, 16-bit floats or float32 on a GPU. Every
// row of an output depends on its own row of the inputs only, and is computed in one fixed order:
// the same bits whatever else is in the batch, at any thread count.
// Shapes are checked; a violation is an internal error. One thread at a time calls an object; its
// calls run in order, and synchronize() waits for them (a no-op on the CPU).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "tensor/raw_matrix.h"
#include "tensor/tensor.h"

namespace minisgl {

class Arena;
class ThreadPool;

// A weight matrix W [rows N, cols K] in the order that a device's linear() streams. Immutable.
class PackedMatrix {
 public:
  virtual ~PackedMatrix() = default;
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  virtual int64_t bytes() const = 0;
  virtual std::string format() const = 0;  // "float32", "q4_1", … as stored

 protected:
  PackedMatrix(int64_t rows, int64_t cols) : rows_(rows), cols_(cols) {}

 private:
  int64_t rows_;
  int64_t cols_;
};

// One paged, ragged attention call; design and drawing in docs/attention.md. Query r of request i
// (n new tokens, kv_len keys) stands at position p = kv_len - n + r and sees keys max(0, p - window
// + 1) … p:
//   s_j = scale * q . k_j, softcapped: s_j = softcap * tanh(s_j / softcap)
//   out = sum_j exp(s_j) v_j / (sum_j exp(s_j) + exp(sink_h))
struct PagedAttentionArgs {
  TensorView out, q;          // [T, Hq, D], rows may be strided
  TensorView k_pool, v_pool;  // [locations, Hkv, D] of one layer, any float dtype
  TensorView cu_seqlens_q;    // [bs + 1] int32
  TensorView cache_seqlens;   // [bs] int32
  TensorView page_table;      // [bs, >= max_seqlen_k] int32 token locations
  TensorView sinks;           // [Hq] float32, or empty
  TensorView lse;             // [T, Hq] float32 log of the denominator, or empty
  int64_t max_seqlen_q = 0;
  int64_t max_seqlen_k = 0;
  float scale = 1.0f;
  float softcap = 0.0f;  // 0: none
  int64_t window = 0;    // 0: none
};

// Work that can be run again: a captured graph on a GPU, the function itself elsewhere.
class RecordedWork {
 public:
  virtual ~RecordedWork() = default;
  virtual void run() = 0;
};

class Kernels {
 public:
  virtual ~Kernels() = default;
  virtual Device device() const = 0;
  virtual std::string description() const = 0;  // "cpu avx512, 2 threads"

  // ---- memory ----
  // Errors: kResource. Zeroed.
  virtual Tensor allocate(DType dtype, std::span<const int64_t> shape) = 0;
  // Same shape and dtype, contiguous; at least one side is on this device, the other may be host.
  virtual void copy(TensorView dst, TensorView src) = 0;
  virtual void synchronize() = 0;
  // Runs `work`, once or more, and gives back something that repeats it. `work` enqueues operations
  // of this object over memory at fixed addresses and does nothing else that a repetition needs.
  virtual std::unique_ptr<RecordedWork> record(std::function<void()> work);

  // ---- weights, at load ----
  // Rows of all parts, one after another (q, k, v -> qkv). `dtype` is what plain weights are kept
  // in (float32, bfloat16, float16); block formats stay as they are unless the device has no kernel
  // for one. float32 keeps every weight exactly.
  virtual std::unique_ptr<PackedMatrix> pack(std::span<const RawMatrix> parts, DType dtype) = 0;
  // A vector (or small matrix) as float32, exactly.
  virtual Tensor load_float(const RawMatrix& values) = 0;

  // ---- operations ----
  // out[t] = W[ids[t]]                                 out: [T, K], ids: [T] int32, 0 <= id < N
  virtual void embedding(TensorView out, TensorView ids, const PackedMatrix& table) = 0;
  // y = x W^T + bias                                   y: [T, N], x: [T, K], bias: [N] or empty
  virtual void linear(TensorView y, TensorView x, const PackedMatrix& w, TensorView bias) = 0;
  // y = w * x / sqrt(mean(x^2) + eps) over the last dimension (Zhang & Sennrich 2019)
  // x, y: [..., dim], may be the same memory, outer dimensions may be strided; w: [dim] float32
  virtual void rms_norm(TensorView y, TensorView x, TensorView w, float eps) = 0;
  // x += addend; y = rms_norm(x)                       y, x, addend: [T, H]
  virtual void add_rms_norm(TensorView y, TensorView x, TensorView addend, TensorView w,
                            float eps) = 0;
  // x += addend                                        [T, H]
  virtual void add(TensorView x, TensorView addend) = 0;
  // Rotates pairs (i, i + R/2) of each head by the angle of its token's position (Su et al. 2021).
  // q: [T, Hq, D], k: [T, Hkv, D], in place, rows may be strided; positions: [T] int32;
  // cos_sin: [max_position, R] float32, cosines in the first R/2 columns, sines in the rest; R <= D
  virtual void rope(TensorView q, TensorView k, TensorView positions, TensorView cos_sin) = 0;
  // rms_norm of each head of q (by q_w) and of k (by k_w) [D], in place, then rope: in one pass
  // where the device has one, else one after another.
  virtual void qk_norm_rope(TensorView q, TensorView k, TensorView q_w, TensorView k_w, float eps,
                            TensorView positions, TensorView cos_sin);
  // y = silu(gate) * up, silu(z) = z / (1 + exp(-z))   y: [T, I], gate_up: [T, 2 I], gate first
  virtual void silu_mul(TensorView y, TensorView gate_up) = 0;
  // y = gelu_tanh(gate) * up
  virtual void gelu_mul(TensorView y, TensorView gate_up) = 0;
  // x = cap * tanh(x / cap)
  virtual void softcap(TensorView x, float cap) = 0;
  // pool[loc[t]] = rows[t], converted to the pool's dtype
  // pool: [locations, Hkv, D], rows: [T, Hkv, D] (may be strided), loc: [T] int32
  virtual void store_kv(TensorView pool, TensorView rows, TensorView loc) = 0;
  // See PagedAttentionArgs. Scores and softmax in float32 or better, keys in order.
  virtual void paged_attention(const PagedAttentionArgs& args) = 0;
  // out[i] = x[rows[i]]                                out: [n, H], x: [T, H], rows: [n] int32
  virtual void gather_rows(TensorView out, TensorView x, TensorView rows) = 0;
  // ids[b] = argmax(logits[b]), the lowest index of equal maxima; logits: [bs, V], ids: [bs] int32
  virtual void argmax(TensorView ids, TensorView logits) = 0;
  // weights, experts = top k of softmax(logits), lowest index first on ties, renormalised to sum 1
  // if `normalize`. logits: [T, E], experts: [T, k] int32, weights: [T, k] float32
  virtual void moe_route(TensorView experts, TensorView weights, TensorView logits,
                         bool normalize) = 0;
  // y[t] = sum_i weights[t, i] * down[e](silu(gate(x[t])) * up(x[t])), e = experts[t, i], summed
  // in order of i.  y, x: [T, H]; gate_up: E matrices [2 I, H]; down: E matrices [H, I]
  // Scratch comes from `arena`.
  virtual void moe_mlp(TensorView y, TensorView x, TensorView experts, TensorView weights,
                       std::span<const std::unique_ptr<PackedMatrix>> gate_up,
                       std::span<const std::unique_ptr<PackedMatrix>> down, Arena& arena) = 0;
};

// Every operation in plain loops, float32, one thread. Never optimised.
std::unique_ptr<Kernels> make_reference_kernels();

// The CPU's kernels. `isa`: "auto" (the best that cpuid shows), "x86-64-v2", "avx2", "avx512", …;
// MINISGL_ISA overrides "auto". Errors: kInvalidArgument with the list of what this machine runs.
std::unique_ptr<Kernels> make_cpu_kernels(ThreadPool& threads, const std::string& isa = "auto");
// Names that make_cpu_kernels() takes on this machine, best first.
std::span<const std::string> available_isas();

}  // namespace minisgl
