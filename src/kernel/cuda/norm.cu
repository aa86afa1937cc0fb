#include "kernel/cuda/helpers.cuh"

namespace minisgl::cuda {
namespace {

// y[r] = w * x[r] / sqrt(mean(x[r]^2) + eps)
// A block takes a row; with WarpPerRow a warp does (short rows: per-head norms). Reads x once from
// memory (again from L1), writes y once: the floor is memory, 2 * rows * dim elements.
template <class T, int N, bool WarpPerRow>
__global__ void rms_norm_kernel(T* y, const T* x, const float* w, int64_t num_rows, int heads,
                                int dim, int64_t y_row, int64_t y_head, int64_t x_row,
                                int64_t x_head, float eps) {
  __shared__ float shared[32];
  const int width = WarpPerRow ? 32 : blockDim.x;
  const int t = WarpPerRow ? threadIdx.x % 32 : threadIdx.x;
  const int64_t r =
      WarpPerRow ? blockIdx.x * int64_t(blockDim.x / 32) + threadIdx.x / 32 : int64_t(blockIdx.x);
  if (r >= num_rows) return;
  x += r / heads * x_row + r % heads * x_head;
  y += r / heads * y_row + r % heads * y_head;

  float sum = 0.0f;
  for (int i = t * N; i < dim; i += width * N) {
    const Pack<T, N> v = load<T, N>(x + i);
#pragma unroll
    for (int j = 0; j < N; ++j) sum += to_float(v.values[j]) * to_float(v.values[j]);
  }
  sum = WarpPerRow ? warp_sum(sum) : block_sum(sum, shared);
  const float scale = 1.0f / sqrtf(sum / dim + eps);
  for (int i = t * N; i < dim; i += width * N) {
    Pack<T, N> v = load<T, N>(x + i);
#pragma unroll
    for (int j = 0; j < N; ++j) {
      v.values[j] = from_float<T>(w[i + j] * (to_float(v.values[j]) * scale));
    }
    store<T, N>(y + i, v);
  }
}

// x[r] += addend[r]; y[r] = rms_norm(x[r]) of the sum as stored. A block takes a row.
// Reads x and addend, writes x and y once: the floor is memory, 4 * rows * dim elements.
template <class T, int N>
__global__ void add_rms_norm_kernel(T* y, T* x, const T* addend, const float* w, int dim,
                                    int64_t y_row, int64_t x_row, int64_t addend_row, float eps) {
  __shared__ float shared[32];
  x += blockIdx.x * x_row;
  y += blockIdx.x * y_row;
  addend += blockIdx.x * addend_row;

  float sum = 0.0f;
  for (int i = threadIdx.x * N; i < dim; i += blockDim.x * N) {
    Pack<T, N> v = load<T, N>(x + i);
    const Pack<T, N> a = load<T, N>(addend + i);
#pragma unroll
    for (int j = 0; j < N; ++j) {
      v.values[j] = from_float<T>(to_float(v.values[j]) + to_float(a.values[j]));
      sum += to_float(v.values[j]) * to_float(v.values[j]);
    }
    store<T, N>(x + i, v);
  }
  sum = block_sum(sum, shared);
  const float scale = 1.0f / sqrtf(sum / dim + eps);
  for (int i = threadIdx.x * N; i < dim; i += blockDim.x * N) {  // a thread rereads its own packs
    Pack<T, N> v = load<T, N>(x + i);
#pragma unroll
    for (int j = 0; j < N; ++j) {
      v.values[j] = from_float<T>(w[i + j] * (to_float(v.values[j]) * scale));
    }
    store<T, N>(y + i, v);
  }
}

// x[r, i] += addend[r, i]; a thread takes a pack. The floor is memory, 3 * rows * dim elements.
template <class T, int N>
__global__ void add_kernel(T* x, const T* addend, int dim, int64_t x_row, int64_t addend_row) {
  const int64_t r = blockIdx.y;
  const int i = (blockIdx.x * blockDim.x + threadIdx.x) * N;
  if (i >= dim) return;
  Pack<T, N> v = load<T, N>(x + r * x_row + i);
  const Pack<T, N> a = load<T, N>(addend + r * addend_row + i);
#pragma unroll
  for (int j = 0; j < N; ++j) {
    v.values[j] = from_float<T>(to_float(v.values[j]) + to_float(a.values[j]));
  }
  store<T, N>(x + r * x_row + i, v);
}

template <class T>
__global__ void add_bias_kernel(T* y, const float* bias, int dim, int64_t y_row) {
  const int64_t r = blockIdx.y;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < dim) y[r * y_row + i] = from_float<T>(to_float(y[r * y_row + i]) + bias[i]);
}

// A warp takes a head of q or k: y = w * x / sqrt(mean(x^2) + eps), then pairs (i, i + rotary / 2)
// are rotated by the token's angle. Reads and writes q and k once: the floor is memory.
template <class T>
__global__ void qk_norm_rope_kernel(T* q, T* k, const float* q_w, const float* k_w, float eps,
                                    const int32_t* positions, const float* cos_sin, int64_t tokens,
                                    int q_heads, int k_heads, int dim, int64_t q_row,
                                    int64_t q_head, int64_t k_row, int64_t k_head, int rotary) {
  extern __shared__ float normed_of_block[];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, heads = q_heads + k_heads;
  const int64_t id = blockIdx.x * int64_t(blockDim.x / 32) + warp;
  if (id >= tokens * heads) return;
  const int64_t t = id / heads;
  const int head = int(id % heads);
  const bool is_q = head < q_heads;
  T* x = is_q ? q + t * q_row + head * q_head : k + t * k_row + (head - q_heads) * k_head;
  const float* w = is_q ? q_w : k_w;
  float* normed = normed_of_block + warp * dim;

  float sum = 0.0f;
  for (int i = lane; i < dim; i += 32) {
    normed[i] = to_float(x[i]);
    sum += normed[i] * normed[i];
  }
  const float scale = 1.0f / sqrtf(warp_sum(sum) / dim + eps);
  for (int i = lane; i < dim; i += 32) normed[i] = w[i] * (normed[i] * scale);
  __syncwarp();
  const int half = rotary / 2;
  const float* angles = cos_sin + int64_t(positions[t]) * rotary;
  for (int i = lane; i < dim; i += 32) {
    float value = normed[i];
    if (i < half) {
      value = value * angles[i] - normed[i + half] * angles[half + i];
    } else if (i < rotary) {
      value = value * angles[i - half] + normed[i - half] * angles[i];
    }
    x[i] = from_float<T>(value);
  }
}

// Threads of a block whose row holds `packs` packs: of the row's length only, see launch.h.
unsigned row_threads(int64_t packs) {
  unsigned threads = 32;
  while (threads < 1024 && threads < packs) threads *= 2;
  return threads;
}

template <class T, int N>
cudaError_t launch_rms_norm(Rows y, Rows x, const float* w, float eps, cudaStream_t stream) {
  const int64_t rows = x.rows * x.heads;
  auto launch = [&](auto kernel, unsigned blocks, unsigned threads) {
    kernel<<<blocks, threads, 0, stream>>>(static_cast<T*>(y.data), static_cast<const T*>(x.data),
                                           w, rows, int(x.heads), int(x.dim), y.row_stride,
                                           y.head_stride, x.row_stride, x.head_stride, eps);
    return cudaGetLastError();
  };
  if (x.dim / N <= 32) {
    return launch(rms_norm_kernel<T, N, true>, unsigned((rows + 3) / 4), 128);
  }
  return launch(rms_norm_kernel<T, N, false>, unsigned(rows), row_threads(x.dim / N));
}

}  // namespace

cudaError_t rms_norm(Rows y, Rows x, const float* w, float eps, cudaStream_t stream) {
  if (x.rows * x.heads == 0) return cudaSuccess;
  return dispatch_float(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    return is_packable(x) && is_packable(y) ? launch_rms_norm<T, kFullPack<T>>(y, x, w, eps, stream)
                                            : launch_rms_norm<T, 1>(y, x, w, eps, stream);
  });
}

cudaError_t qk_norm_rope(Rows q, Rows k, const float* q_w, const float* k_w, float eps,
                         const int32_t* positions, const float* cos_sin, int64_t rotary,
                         cudaStream_t stream) {
  const int64_t warps = q.rows * (q.heads + k.heads);
  if (warps == 0) return cudaSuccess;
  return dispatch_float(q.dtype, [&](auto tag) {
    using T = decltype(tag);
    const size_t shared = 4 * size_t(q.dim) * sizeof(float);
    qk_norm_rope_kernel<<<unsigned((warps + 3) / 4), 128, shared, stream>>>(
        static_cast<T*>(q.data), static_cast<T*>(k.data), q_w, k_w, eps, positions, cos_sin, q.rows,
        int(q.heads), int(k.heads), int(q.dim), q.row_stride, q.head_stride, k.row_stride,
        k.head_stride, int(rotary));
    return cudaGetLastError();
  });
}

cudaError_t add_rms_norm(Rows y, Rows x, Rows addend, const float* w, float eps,
                         cudaStream_t stream) {
  if (x.rows == 0) return cudaSuccess;
  return dispatch_float(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    auto launch = [&](auto kernel, int pack) {
      kernel<<<unsigned(x.rows), row_threads(x.dim / pack), 0, stream>>>(
          static_cast<T*>(y.data), static_cast<T*>(x.data), static_cast<const T*>(addend.data), w,
          int(x.dim), y.row_stride, x.row_stride, addend.row_stride, eps);
      return cudaGetLastError();
    };
    const bool packed = is_packable(x) && is_packable(y) && is_packable(addend);
    return packed ? launch(add_rms_norm_kernel<T, kFullPack<T>>, kFullPack<T>)
                  : launch(add_rms_norm_kernel<T, 1>, 1);
  });
}

cudaError_t add(Rows x, Rows addend, cudaStream_t stream) {
  if (x.rows == 0) return cudaSuccess;
  return dispatch_float(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    auto launch = [&](auto kernel, int pack) {
      const int64_t packs = x.dim / pack;
      for (int64_t begin = 0; begin < x.rows; begin += 65535) {  // the grid's limit in y
        const int64_t rows = x.rows - begin < 65535 ? x.rows - begin : 65535;
        kernel<<<dim3(unsigned((packs + 127) / 128), unsigned(rows)), 128, 0, stream>>>(
            static_cast<T*>(x.data) + begin * x.row_stride,
            static_cast<const T*>(addend.data) + begin * addend.row_stride, int(x.dim),
            x.row_stride, addend.row_stride);
      }
      return cudaGetLastError();
    };
    return is_packable(x) && is_packable(addend) ? launch(add_kernel<T, kFullPack<T>>, kFullPack<T>)
                                                 : launch(add_kernel<T, 1>, 1);
  });
}

cudaError_t add_bias(Rows y, const float* bias, cudaStream_t stream) {
  if (y.rows == 0) return cudaSuccess;
  return dispatch_float(y.dtype, [&](auto tag) {
    using T = decltype(tag);
    for (int64_t begin = 0; begin < y.rows; begin += 65535) {
      const int64_t rows = y.rows - begin < 65535 ? y.rows - begin : 65535;
      add_bias_kernel<<<dim3(unsigned((y.dim + 255) / 256), unsigned(rows)), 256, 0, stream>>>(
          static_cast<T*>(y.data) + begin * y.row_stride, bias, int(y.dim), y.row_stride);
    }
    return cudaGetLastError();
  });
}

}  // namespace minisgl::cuda
