// Kernels that choose: argmax over the vocabulary, the router of a mixture of experts.
#include "kernel/cuda/helpers.cuh"

namespace minisgl::cuda {
namespace {

struct Candidate {
  float value;
  int index;
};
// The larger value; the lower index of equal ones. A NaN never wins.
__device__ Candidate better(Candidate a, Candidate b) {
  if (b.index < 0) return a;
  if (a.index < 0) return b;
  if (b.value > a.value || (b.value == a.value && b.index < a.index)) return b;
  return a;
}
__device__ Candidate warp_best(Candidate best) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    best = better(best, Candidate{__shfl_xor_sync(~0u, best.value, lanes),
                                  __shfl_xor_sync(~0u, best.index, lanes)});
  }
  return best;
}

constexpr int kSlices = 64;  // of a row, at most

// The best of a block's candidates, in thread 0.
__device__ Candidate block_best(Candidate best) {
  __shared__ Candidate shared[32];
  best = warp_best(best);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = best;
  __syncthreads();
  if (threadIdx.x >= 32) return best;
  best = threadIdx.x < blockDim.x / 32 ? shared[threadIdx.x] : Candidate{-INFINITY, -1};
  return warp_best(best);
}

// A block takes a slice of a row; the next kernel picks from the slices. Reads the logits once: the
// floor is memory.
template <class T>
__global__ void slice_argmax_kernel(Candidate* found, const T* logits, int64_t dim, int64_t row) {
  logits += blockIdx.y * row;
  const int64_t slice = (dim + gridDim.x - 1) / gridDim.x;
  const int64_t begin = blockIdx.x * slice, end = begin + slice < dim ? begin + slice : dim;
  Candidate best{-INFINITY, -1};
  for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
    const float value = to_float(logits[i]);
    if (value == value) best = better(best, Candidate{value, int(i)});
  }
  best = block_best(best);
  if (threadIdx.x == 0) found[blockIdx.y * gridDim.x + blockIdx.x] = best;
}

// A row of NaNs alone gives 0.
__global__ void pick_kernel(int32_t* ids, const Candidate* found, int slices) {
  Candidate best{-INFINITY, -1};
  for (int i = threadIdx.x; i < slices; i += 32) {
    best = better(best, found[blockIdx.x * int64_t(slices) + i]);
  }
  best = warp_best(best);
  if (threadIdx.x == 0) ids[blockIdx.x] = best.index < 0 ? 0 : best.index;
}

// A warp takes a token: softmax over E experts, then k rounds of argmax. E is small, so the floor
// is the launch.
template <class T>
__global__ void moe_route_kernel(int32_t* experts, float* weights, const T* logits, int64_t tokens,
                                 int num_experts, int top_k, int64_t row, bool normalize) {
  extern __shared__ float probs_of_block[];
  const int64_t t = blockIdx.x * int64_t(blockDim.x / 32) + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (t >= tokens) return;
  float* probs = probs_of_block + threadIdx.x / 32 * num_experts;
  float top = -INFINITY;
  for (int e = lane; e < num_experts; e += 32) top = fmaxf(top, to_float(logits[t * row + e]));
  top = warp_max(top);
  float sum = 0.0f;
  for (int e = lane; e < num_experts; e += 32) {
    probs[e] = expf(to_float(logits[t * row + e]) - top);
    sum += probs[e];
  }
  sum = warp_sum(sum);
  for (int e = lane; e < num_experts; e += 32) probs[e] /= sum;

  float chosen = 0.0f;
  for (int i = 0; i < top_k; ++i) {
    Candidate best{-INFINITY, -1};
    for (int e = lane; e < num_experts; e += 32) best = better(best, Candidate{probs[e], e});
    best = warp_best(best);
    if (best.index % 32 == lane) probs[best.index] = -1.0f;  // its owner takes it out
    if (lane == 0) {
      experts[t * top_k + i] = best.index;
      weights[t * top_k + i] = best.value;
    }
    chosen += best.value;
  }
  if (!normalize) return;
  __syncwarp();
  for (int i = lane; i < top_k; i += 32) weights[t * top_k + i] /= chosen;
}

}  // namespace

size_t argmax_scratch_bytes(int64_t rows) { return size_t(rows) * kSlices * sizeof(Candidate); }

cudaError_t argmax(int32_t* ids, Rows logits, void* scratch, cudaStream_t stream) {
  if (logits.rows == 0) return cudaSuccess;
  return dispatch_float(logits.dtype, [&](auto tag) {
    using T = decltype(tag);
    auto* found = static_cast<Candidate*>(scratch);
    int slices = 1;  // enough blocks for the chip, and work for each
    while (slices < kSlices && slices * logits.rows < 1024 && logits.dim / slices > 2048) {
      slices *= 2;
    }
    for (int64_t begin = 0; begin < logits.rows; begin += 65535) {
      const int64_t rows = logits.rows - begin < 65535 ? logits.rows - begin : 65535;
      slice_argmax_kernel<<<dim3(unsigned(slices), unsigned(rows)), 256, 0, stream>>>(
          found + begin * slices, static_cast<const T*>(logits.data) + begin * logits.row_stride,
          logits.dim, logits.row_stride);
    }
    pick_kernel<<<unsigned(logits.rows), 32, 0, stream>>>(ids, found, slices);
    return cudaGetLastError();
  });
}

cudaError_t moe_route(int32_t* experts, float* weights, int64_t top_k, Rows logits, bool normalize,
                      cudaStream_t stream) {
  if (logits.rows == 0) return cudaSuccess;
  return dispatch_float(logits.dtype, [&](auto tag) {
    using T = decltype(tag);
    const size_t shared = 4 * size_t(logits.dim) * sizeof(float);
    moe_route_kernel<<<unsigned((logits.rows + 3) / 4), 128, shared, stream>>>(
        experts, weights, static_cast<const T*>(logits.data), logits.rows, int(logits.dim),
        int(top_k), logits.row_stride, normalize);
    return cudaGetLastError();
  });
}

}  // namespace minisgl::cuda
