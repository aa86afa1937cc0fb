// y = x W^T for one or two rows of x: decode of few requests. The weights are streamed once at
// memory speed; a library's matrix kernels reach a third of it at small shapes. At 8 rows the
// arithmetic of this kernel outweighs the memory (13.1 ms a step of a 14B model against 9), so that
// more rows take the library.
#include "kernel/cuda/helpers.cuh"

namespace minisgl::cuda {
namespace {

constexpr int kWarps = 4;  // a block

// A warp takes kRows rows of W and all M rows of x; Split warps of a block share the same rows and
// take alternate packs of K. A lane keeps M * kRows sums. Which products a sum holds, and in which
// order, depends on K and Split alone: the same bits for any M.
// The floor is reading W: N * K elements.
template <class T, class Y, int M, int kRows, int Split>
__global__ void gemv_kernel(Y* y, const T* x, const T* w, const float* bias, int n, int k,
                            int64_t x_row, int64_t y_row) {
  constexpr int kPack = kFullPack<T>;
  constexpr int kTeams = kWarps / Split;  // rows groups a block
  __shared__ float partial[kWarps][kRows * M];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int first = (blockIdx.x * kTeams + warp / Split) * kRows;
  const int part = warp % Split;

  float sums[kRows][M] = {};
  if (first < n) {
    const T* rows[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) rows[r] = w + int64_t(min(first + r, n - 1)) * k;
#pragma unroll 4
    for (int i = (part * 32 + lane) * kPack; i < k; i += Split * 32 * kPack) {
      Pack<T, kPack> weights[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r) weights[r] = load<T, kPack>(rows[r] + i);
#pragma unroll
      for (int m = 0; m < M; ++m) {
        const Pack<T, kPack> inputs = load<T, kPack>(x + m * x_row + i);
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
#pragma unroll
          for (int j = 0; j < kPack; ++j) {
            sums[r][m] =
                fmaf(to_float(weights[r].values[j]), to_float(inputs.values[j]), sums[r][m]);
          }
        }
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int m = 0; m < M; ++m) {
      const float sum = warp_sum(sums[r][m]);
      if (lane == 0) partial[warp][r * M + m] = sum;
    }
  }
  __syncthreads();
  if (part != 0 || lane >= kRows * M) return;
  const int r = lane / M, m = lane % M;
  if (first + r >= n) return;
  float sum = bias == nullptr ? 0.0f : bias[first + r];
#pragma unroll
  for (int s = 0; s < Split; ++s) sum += partial[warp + s][lane];
  y[m * y_row + first + r] = from_float<Y>(sum);
}

template <class T, class Y, int M, int Split>
cudaError_t launch(const GemvCall& call, cudaStream_t stream) {
  constexpr int kRows = 2;
  constexpr int kRowsABlock = kWarps / Split * kRows;
  const auto blocks = unsigned((call.n + kRowsABlock - 1) / kRowsABlock);
  gemv_kernel<T, Y, M, kRows, Split><<<blocks, kWarps * 32, 0, stream>>>(
      static_cast<Y*>(call.y), static_cast<const T*>(call.x), static_cast<const T*>(call.w),
      call.bias, int(call.n), int(call.k), call.x_stride, call.y_stride);
  return cudaGetLastError();
}

// Few rows: more warps share one, so that the chip is full.
template <class T, class Y, int M>
cudaError_t dispatch_split(const GemvCall& call, cudaStream_t stream) {
  if (call.n < 2048) return launch<T, Y, M, 4>(call, stream);
  if (call.n < 4096) return launch<T, Y, M, 2>(call, stream);
  return launch<T, Y, M, 1>(call, stream);
}

template <class T, class Y>
cudaError_t dispatch_rows(const GemvCall& call, cudaStream_t stream) {
  switch (call.rows) {
    case 1:
      return dispatch_split<T, Y, 1>(call, stream);
    case 2:
      return dispatch_split<T, Y, 2>(call, stream);
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace

bool gemv_supports(const GemvCall& call) {
  const auto aligned = [](const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; };
  return call.type != DType::kFloat32 && call.rows >= 1 && call.rows <= 2 && call.k % 8 == 0 &&
         call.x_stride % 8 == 0 && aligned(call.x) && aligned(call.w) && call.n <= (1 << 30) &&
         call.k <= (1 << 30);
}

cudaError_t gemv(const GemvCall& call, cudaStream_t stream) {
  const bool same = call.y_type == call.type;
  if (call.type == DType::kBFloat16) {
    return same ? dispatch_rows<__nv_bfloat16, __nv_bfloat16>(call, stream)
                : dispatch_rows<__nv_bfloat16, float>(call, stream);
  }
  return same ? dispatch_rows<__half, __half>(call, stream)
              : dispatch_rows<__half, float>(call, stream);
}

}  // namespace minisgl::cuda
