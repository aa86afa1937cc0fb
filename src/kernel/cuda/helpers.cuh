// What every kernel needs: conversions, 16-byte packs, reductions in a fixed order, dispatch.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "kernel/cuda/launch.h"

namespace minisgl::cuda {

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(__half x) { return __half2float(x); }
__device__ inline float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }

template <class T>
__device__ T from_float(float x);
template <>
__device__ inline float from_float<float>(float x) {
  return x;
}
template <>
__device__ inline __half from_float<__half>(float x) {
  return __float2half_rn(x);
}
template <>
__device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}

// N elements that one load or store moves: 16 bytes where rows allow it, else a single element.
template <class T, int N>
struct alignas(sizeof(T) * N) Pack {
  T values[N];
};
template <class T>
constexpr int kFullPack = 16 / sizeof(T);

template <class T, int N>
__device__ inline Pack<T, N> load(const T* p) {
  return *reinterpret_cast<const Pack<T, N>*>(p);
}
template <class T, int N>
__device__ inline void store(T* p, const Pack<T, N>& pack) {
  *reinterpret_cast<Pack<T, N>*>(p) = pack;
}

// Butterfly: the same order of additions in every lane, always.
template <class T>
__device__ inline T warp_sum(T x) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) x += __shfl_xor_sync(~0u, x, lanes);
  return x;
}
__device__ inline float warp_max(float x) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, lanes));
  return x;
}

// Over a block of whole warps; every thread gets the result. `shared` holds 32 floats and may be
// used again after the next __syncthreads().
__device__ inline float block_sum(float x, float* shared) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  x = warp_sum(x);
  if (lane == 0) shared[warp] = x;
  __syncthreads();
  return warp_sum(lane < warps ? shared[lane] : 0.0f);
}

// f(T{}) with the element type of `dtype`. Other types were refused before a launch.
template <class F>
cudaError_t dispatch_float(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kFloat32:
      return f(float{});
    case DType::kFloat16:
      return f(__half{});
    case DType::kBFloat16:
      return f(__nv_bfloat16{});
    default:
      return cudaErrorNotSupported;
  }
}

// Whether every row and head of `x` starts on 16 bytes and holds whole packs.
inline bool is_packable(const Rows& x) {
  const int64_t bytes = x.dtype == DType::kFloat32 ? 4 : 2;
  const int64_t pack = 16 / bytes;
  return reinterpret_cast<uintptr_t>(x.data) % 16 == 0 && x.dim % pack == 0 &&
         x.row_stride % pack == 0 && (x.heads == 1 || x.head_stride % pack == 0);
}

}  // namespace minisgl::cuda
