// The experts' MLP, plainly: a warp computes one output element, weights are streamed once for
// every (token, expert) pair. Right for any shape; a grouped GEMM beats it for many tokens.
#include "kernel/cuda/helpers.cuh"

namespace minisgl::cuda {
namespace {

constexpr int kWarps = 8;

// Lane's part of w . x over n elements, lanes interleaved by packs.
template <class T, class X, int N>
__device__ float dot_part(const T* w, const X* x, int n) {
  float sum = 0.0f;
  for (int i = threadIdx.x % 32 * N; i < n; i += 32 * N) {
    const Pack<T, N> a = load<T, N>(w + i);
#pragma unroll
    for (int j = 0; j < N; ++j) sum += to_float(a.values[j]) * to_float(x[i + j]);
  }
  return sum;
}

template <class T, int N>
__global__ void gate_up_kernel(float* hidden, const T* x, const int32_t* experts,
                               const void* const* gate_up, int top_k, int inner, int dim,
                               int64_t x_row) {
  const int64_t pair = blockIdx.y;  // token * top_k + choice
  const int row = blockIdx.x * kWarps + threadIdx.x / 32;
  if (row >= inner) return;
  const T* w = static_cast<const T*>(gate_up[experts[pair]]);
  x += pair / top_k * x_row;
  const float gate = warp_sum(dot_part<T, T, N>(w + int64_t(row) * dim, x, dim));
  const float up = warp_sum(dot_part<T, T, N>(w + int64_t(inner + row) * dim, x, dim));
  if (threadIdx.x % 32 == 0) hidden[pair * inner + row] = gate / (1.0f + expf(-gate)) * up;
}

template <class T, int N>
__global__ void down_kernel(T* y, const float* hidden, const int32_t* experts, const float* weights,
                            const void* const* down, int top_k, int inner, int dim, int64_t y_row) {
  const int64_t t = blockIdx.y;
  const int row = blockIdx.x * kWarps + threadIdx.x / 32;
  if (row >= dim) return;
  float sum = 0.0f;
  for (int i = 0; i < top_k; ++i) {
    const int64_t pair = t * top_k + i;
    const T* w = static_cast<const T*>(down[experts[pair]]) + int64_t(row) * inner;
    sum += weights[pair] * warp_sum(dot_part<T, float, N>(w, hidden + pair * inner, inner));
  }
  if (threadIdx.x % 32 == 0) y[t * y_row + row] = from_float<T>(sum);
}

constexpr int64_t kMaxGridY = 65535;

}  // namespace

cudaError_t moe_gate_up(float* hidden, Rows x, const int32_t* experts, int64_t top_k, int64_t inner,
                        const void* const* gate_up, cudaStream_t stream) {
  return dispatch_float(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    const int64_t tokens_a_launch = kMaxGridY / top_k;
    for (int64_t t = 0; t < x.rows; t += tokens_a_launch) {
      const int64_t tokens = x.rows - t < tokens_a_launch ? x.rows - t : tokens_a_launch;
      const dim3 grid(unsigned((inner + kWarps - 1) / kWarps), unsigned(tokens * top_k));
      auto launch = [&](auto kernel) {
        kernel<<<grid, kWarps * 32, 0, stream>>>(
            hidden + t * top_k * inner, static_cast<const T*>(x.data) + t * x.row_stride,
            experts + t * top_k, gate_up, int(top_k), int(inner), int(x.dim), x.row_stride);
      };
      if (x.dim % kFullPack<T> == 0) {
        launch(gate_up_kernel<T, kFullPack<T>>);
      } else {
        launch(gate_up_kernel<T, 1>);
      }
    }
    return cudaGetLastError();
  });
}

cudaError_t moe_down(Rows y, const float* hidden, const int32_t* experts, const float* weights,
                     int64_t top_k, int64_t inner, const void* const* down, cudaStream_t stream) {
  return dispatch_float(y.dtype, [&](auto tag) {
    using T = decltype(tag);
    for (int64_t t = 0; t < y.rows; t += kMaxGridY) {
      const int64_t tokens = y.rows - t < kMaxGridY ? y.rows - t : kMaxGridY;
      const dim3 grid(unsigned((y.dim + kWarps - 1) / kWarps), unsigned(tokens));
      auto launch = [&](auto kernel) {
        kernel<<<grid, kWarps * 32, 0, stream>>>(static_cast<T*>(y.data) + t * y.row_stride,
                                                 hidden + t * top_k * inner, experts + t * top_k,
                                                 weights + t * top_k, down, int(top_k), int(inner),
                                                 int(y.dim), y.row_stride);
      };
      if (inner % kFullPack<T> == 0) {
        launch(down_kernel<T, kFullPack<T>>);
      } else {
        launch(down_kernel<T, 1>);
      }
    }
    return cudaGetLastError();
  });
}

}  // namespace minisgl::cuda
