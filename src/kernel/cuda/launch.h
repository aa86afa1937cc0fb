// The hand-written kernels, as plain functions that enqueue on a stream: sizes and pointers only,
// shapes were checked by CudaKernels. Included by .cu files, so nothing heavy appears here.
//
// Sums are float32 for every element type and run in an order that depends on the row's length
// alone, so a row's result has the same bits whatever else is in the batch.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace minisgl::cuda {

// rows x heads x dim elements of which only dim is dense. Strides in elements.
struct Rows {
  void* data = nullptr;
  DType dtype = DType::kFloat32;
  int64_t rows = 0;
  int64_t heads = 1;
  int64_t dim = 0;
  int64_t row_stride = 0;
  int64_t head_stride = 0;
};

// cudaSuccess if this build holds code for the current device.
cudaError_t built_for_this_device();

// y = w * x / sqrt(mean(x^2) + eps) per (row, head). w: [dim] float32. y may be x.
cudaError_t rms_norm(Rows y, Rows x, const float* w, float eps, cudaStream_t stream);
// x += addend, then y = rms_norm(x).
cudaError_t add_rms_norm(Rows y, Rows x, Rows addend, const float* w, float eps,
                         cudaStream_t stream);
// x += addend
cudaError_t add(Rows x, Rows addend, cudaStream_t stream);
// y[r] += bias. bias: [dim] float32
cudaError_t add_bias(Rows y, const float* bias, cudaStream_t stream);
// Rotates pairs (i, i + rotary / 2) of every head of q and k. cos_sin: [max_position, rotary].
cudaError_t rope(Rows q, Rows k, const int32_t* positions, const float* cos_sin, int64_t rotary,
                 cudaStream_t stream);
// rms_norm of every head of q (by q_w) and k (by k_w) [dim] float32, then rope; dim <= 512.
cudaError_t qk_norm_rope(Rows q, Rows k, const float* q_w, const float* k_w, float eps,
                         const int32_t* positions, const float* cos_sin, int64_t rotary,
                         cudaStream_t stream);
enum class Gate { kSilu, kGeluTanh };
// y = act(gate) * up. gate_up: [rows, 2 dim], gate first
cudaError_t gated_activation(Gate gate, Rows y, Rows gate_up, cudaStream_t stream);
// x = cap * tanh(x / cap)
cudaError_t softcap(Rows x, float cap, cudaStream_t stream);
// pool[loc[t]] = rows[t], converted. pool: [locations, heads * dim] dense
cudaError_t store_kv(Rows pool, Rows rows, const int32_t* loc, cudaStream_t stream);
// K and V in one launch.
cudaError_t store_kv_pair(Rows k_pool, Rows v_pool, Rows k, Rows v, const int32_t* loc,
                          cudaStream_t stream);
// out[i] = table[ids[i]], converted. An id outside [0, table.rows) gives zeros.
cudaError_t gather_rows(Rows out, Rows table, const int32_t* ids, cudaStream_t stream);
// ids[r] = argmax of row r, the lowest index of equal maxima. scratch: argmax_scratch_bytes(rows)
size_t argmax_scratch_bytes(int64_t rows);
cudaError_t argmax(int32_t* ids, Rows logits, void* scratch, cudaStream_t stream);
// out[i] = in[i], another float type
cudaError_t convert(Rows out, Rows in, cudaStream_t stream);

// y = x W^T + bias for one or two rows of 16-bit floats. w: [n, k] dense; bias: [n] float32 or
// null; y is of x's type or float32. Strides in elements.
struct GemvCall {
  void* y = nullptr;
  const void* x = nullptr;
  const void* w = nullptr;
  const float* bias = nullptr;
  int64_t rows = 0, n = 0, k = 0;
  int64_t x_stride = 0, y_stride = 0;
  DType type = DType::kBFloat16;
  DType y_type = DType::kBFloat16;
};
bool gemv_supports(const GemvCall& call);
cudaError_t gemv(const GemvCall& call, cudaStream_t stream);

// Top k of softmax(logits) per row, lowest index first on ties.
cudaError_t moe_route(int32_t* experts, float* weights, int64_t top_k, Rows logits, bool normalize,
                      cudaStream_t stream);
// hidden[t, i] = silu(gate_e x[t]) * (up_e x[t]), e = experts[t, i]. gate_up: pointers to E
// matrices [2 inner, x.dim] of x's type. hidden: [x.rows, top_k, inner] float32
cudaError_t moe_gate_up(float* hidden, Rows x, const int32_t* experts, int64_t top_k, int64_t inner,
                        const void* const* gate_up, cudaStream_t stream);
// y[t] = sum_i weights[t, i] * down_e hidden[t, i], in order of i. down: E matrices [y.dim, inner]
// of y's type.
cudaError_t moe_down(Rows y, const float* hidden, const int32_t* experts, const float* weights,
                     int64_t top_k, int64_t inner, const void* const* down, cudaStream_t stream);

// The definition of paged attention on the device: see PagedAttentionArgs.
struct PagedAttentionCall {
  Rows out, q;          // [T, Hq, D]
  Rows k_pool, v_pool;  // [locations, Hkv, D]
  const int32_t* cu_seqlens_q = nullptr;
  const int32_t* cache_seqlens = nullptr;
  const int32_t* page_table = nullptr;
  int64_t page_table_stride = 0;
  int64_t batch = 0;
  const float* sinks = nullptr;
  float* lse = nullptr;  // [T, Hq] or null
  float scale = 1.0f;
  float softcap = 0.0f;
  int64_t window = 0;
};
cudaError_t paged_attention(const PagedAttentionCall& call, cudaStream_t stream);

}  // namespace minisgl::cuda
