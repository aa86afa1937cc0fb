// Paged attention by its definition: the truth that the fast backends are tested against, and the
// float32 parity mode.
#include "kernel/cuda/helpers.cuh"

namespace minisgl::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kKeys = 256;        // keys a round
constexpr int kMaxHeadDim = 512;  // kMaxHeadDim / kThreads accumulators a thread

// A block takes one query row and head, and walks its keys in order, kKeys a round: scores (a warp
// a key), the round's maximum and sum, then sum_j p_j v_j (a thread an output column). Each round
// rescales what came before, so any length fits. Float32 throughout. K and V are read once for
// every query head and row: far from any floor, and meant to be.
template <class T, class P>
__global__ void paged_attention_kernel(PagedAttentionCall call) {
  __shared__ float q_row[kMaxHeadDim];
  __shared__ double scores[kKeys];   // then their exponentials
  __shared__ int64_t places[kKeys];  // of each key in the pool, in elements
  __shared__ float shared[32];
  const int64_t row = blockIdx.x;
  const int head = blockIdx.y;
  const int dim = int(call.q.dim);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;

  int64_t request = 0;  // the last one that begins at or before this row
  for (int64_t low = 0, high = call.batch; low < high;) {
    const int64_t middle = (low + high) / 2;
    if (call.cu_seqlens_q[middle + 1] <= row) {
      low = middle + 1;
    } else {
      high = middle;
    }
    request = low;
  }
  if (request >= call.batch) return;  // padding rows behind the last request
  const int64_t first = call.cu_seqlens_q[request], end = call.cu_seqlens_q[request + 1];
  const int64_t position = call.cache_seqlens[request] - end + row;
  const int64_t keys_end = position + 1;
  const int64_t keys_begin = call.window > 0 && keys_end > call.window ? keys_end - call.window : 0;
  (void)first;
  const int64_t kv_head = head / (call.q.heads / call.k_pool.heads);
  const int32_t* table = call.page_table + request * call.page_table_stride;
  const P* k_pool = static_cast<const P*>(call.k_pool.data) + kv_head * call.k_pool.head_stride;
  const P* v_pool = static_cast<const P*>(call.v_pool.data) + kv_head * call.v_pool.head_stride;
  const T* q =
      static_cast<const T*>(call.q.data) + row * call.q.row_stride + head * call.q.head_stride;
  for (int d = threadIdx.x; d < dim; d += kThreads) q_row[d] = to_float(q[d]);

  float accumulator[kMaxHeadDim / kThreads] = {};
  double top = call.sinks ? call.sinks[head] : -INFINITY;
  float denominator = call.sinks ? 1.0f : 0.0f;
  for (int64_t begin = keys_begin; begin < keys_end; begin += kKeys) {
    const int count = int(keys_end - begin < kKeys ? keys_end - begin : kKeys);
    __syncthreads();  // the last round has used scores, places and shared
    for (int j = threadIdx.x; j < count; j += kThreads) {
      places[j] = table[begin + j] * call.k_pool.row_stride;
    }
    __syncthreads();
    for (int j = warp; j < count; j += kThreads / 32) {
      const P* k = k_pool + places[j];
      double score = 0.0;
      for (int d = lane; d < dim; d += 32) score += double(q_row[d]) * to_float(k[d]);
      score = warp_sum(score) * call.scale;
      if (call.softcap > 0) score = call.softcap * tanh(score / call.softcap);
      if (lane == 0) scores[j] = score;
    }
    __syncthreads();
    double new_top = top;
    for (int j = 0; j < count; ++j) new_top = fmax(new_top, scores[j]);
    const float rescale = top == -INFINITY ? 0.0f : expf(float(top - new_top));
    top = new_top;
    __syncthreads();
    float sum = 0.0f;
    for (int j = threadIdx.x; j < count; j += kThreads) {
      const float p = expf(float(scores[j] - top));
      scores[j] = p;
      sum += p;
    }
    denominator = denominator * rescale + block_sum(sum, shared);
    __syncthreads();
#pragma unroll
    for (int part = 0; part < kMaxHeadDim / kThreads; ++part) {
      const int d = part * kThreads + threadIdx.x;
      if (d >= dim) break;
      float value = accumulator[part] * rescale;
      for (int j = 0; j < count; ++j) value += float(scores[j]) * to_float(v_pool[places[j] + d]);
      accumulator[part] = value;
    }
  }

  T* out = static_cast<T*>(call.out.data) + row * call.out.row_stride + head * call.out.head_stride;
#pragma unroll
  for (int part = 0; part < kMaxHeadDim / kThreads; ++part) {
    const int d = part * kThreads + threadIdx.x;
    if (d < dim) out[d] = from_float<T>(denominator > 0 ? accumulator[part] / denominator : 0.0f);
  }
  if (call.lse != nullptr && threadIdx.x == 0) {
    call.lse[row * call.q.heads + head] = float(top + log(double(denominator)));
  }
}

}  // namespace

cudaError_t paged_attention(const PagedAttentionCall& call, cudaStream_t stream) {
  if (call.q.rows == 0) return cudaSuccess;
  if (call.q.dim > kMaxHeadDim) return cudaErrorNotSupported;
  return dispatch_float(call.q.dtype, [&](auto q) {
    return dispatch_float(call.k_pool.dtype, [&](auto p) {
      const dim3 grid(unsigned(call.q.rows), unsigned(call.q.heads));
      paged_attention_kernel<decltype(q), decltype(p)><<<grid, kThreads, 0, stream>>>(call);
      return cudaGetLastError();
    });
  });
}

}  // namespace minisgl::cuda
