// Kernels whose outputs depend on few inputs each: rope, gates, softcap, gathers and stores. The
// floor of all of them is memory.
#include "kernel/cuda/helpers.cuh"

namespace minisgl::cuda {
namespace {

unsigned blocks_for(int64_t threads, int per_block) {
  return unsigned((threads + per_block - 1) / per_block);
}

// Rotates (x[i], x[i + rotary/2]) of each head by its token's angle. A block takes a token; its
// threads walk the pairs of q's heads, then of k's. Reads and writes q and k once.
template <class T>
__global__ void rope_kernel(T* q, T* k, const int32_t* positions, const float* cos_sin, int q_heads,
                            int k_heads, int64_t q_row, int64_t q_head, int64_t k_row,
                            int64_t k_head, int rotary) {
  const int64_t t = blockIdx.x;
  const int half = rotary / 2;
  const float* angles = cos_sin + int64_t(positions[t]) * rotary;
  for (int i = threadIdx.x; i < (q_heads + k_heads) * half; i += blockDim.x) {
    const int head = i / half, pair = i % half;
    T* x =
        head < q_heads ? q + t * q_row + head * q_head : k + t * k_row + (head - q_heads) * k_head;
    const float cos = angles[pair], sin = angles[half + pair];
    const float a = to_float(x[pair]), b = to_float(x[pair + half]);
    x[pair] = from_float<T>(a * cos - b * sin);
    x[pair + half] = from_float<T>(b * cos + a * sin);
  }
}

struct Silu {
  __device__ float operator()(float z) const { return z / (1.0f + expf(-z)); }
};
// 0.5 z (1 + tanh(sqrt(2 / pi) (z + 0.044715 z^3)))
struct GeluTanh {
  __device__ float operator()(float z) const {
    return 0.5f * z * (1.0f + tanhf(0.7978845608028654f * (z + 0.044715f * z * z * z)));
  }
};

// y[t, i] = act(gate[t, i]) * up[t, i]; a thread takes a pack. Reads 2 T I, writes T I elements.
template <class T, int N, class Act>
__global__ void gate_kernel(T* y, const T* gate_up, int64_t rows, int dim, int64_t y_row,
                            int64_t x_row) {
  const int packs = dim / N;
  const int64_t id = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (id >= rows * packs) return;
  const int64_t r = id / packs;
  const int i = int(id % packs) * N;
  const Pack<T, N> gate = load<T, N>(gate_up + r * x_row + i);
  const Pack<T, N> up = load<T, N>(gate_up + r * x_row + dim + i);
  Pack<T, N> out;
#pragma unroll
  for (int j = 0; j < N; ++j) {
    out.values[j] = from_float<T>(Act()(to_float(gate.values[j])) * to_float(up.values[j]));
  }
  store<T, N>(y + r * y_row + i, out);
}

template <class T>
__global__ void softcap_kernel(T* x, int64_t rows, int64_t dim, int64_t x_row, float cap) {
  const int64_t id = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (id >= rows * dim) return;
  T& value = x[id / dim * x_row + id % dim];
  value = from_float<T>(cap * tanhf(to_float(value) / cap));
}

// to[loc[t]] = from[t] for one token; N elements a thread, converted on the way.
template <class P, class T, int N>
__device__ void store_token(P* pool, const T* rows, int64_t t, int64_t location, int heads, int dim,
                            int64_t row, int64_t head) {
  for (int i = threadIdx.x * N; i < heads * dim; i += blockDim.x * N) {
    const Pack<T, N> in = load<T, N>(rows + t * row + i / dim * head + i % dim);
    Pack<P, N> out;
#pragma unroll
    for (int j = 0; j < N; ++j) out.values[j] = from_float<P>(to_float(in.values[j]));
    store<P, N>(pool + location * heads * dim + i, out);
  }
}
// A block takes a token of one side: blockIdx.y = 0 is the first pool, 1 the second.
template <class P, class T, int N>
__global__ void store_kv_kernel(P* pool0, P* pool1, const T* rows0, const T* rows1,
                                const int32_t* loc, int64_t locations, int heads, int dim,
                                int64_t row0, int64_t head0, int64_t row1, int64_t head1) {
  const int64_t t = blockIdx.x;
  const int64_t location = loc[t];
  if (location < 0 || location >= locations) return;
  if (blockIdx.y == 0) {
    store_token<P, T, N>(pool0, rows0, t, location, heads, dim, row0, head0);
  } else {
    store_token<P, T, N>(pool1, rows1, t, location, heads, dim, row1, head1);
  }
}

// out[i] = table[ids[i]]; a block takes a row.
template <class P, class T, int N>
__global__ void gather_kernel(P* out, const T* table, const int32_t* ids, int64_t table_rows,
                              int dim, int64_t out_row, int64_t table_row) {
  const int64_t r = blockIdx.x;
  const int64_t id = ids == nullptr ? r : ids[r];
  const bool valid = id >= 0 && id < table_rows;
  for (int i = threadIdx.x * N; i < dim; i += blockDim.x * N) {
    Pack<T, N> in;
    if (valid) in = load<T, N>(table + id * table_row + i);
    Pack<P, N> result;
#pragma unroll
    for (int j = 0; j < N; ++j) {
      result.values[j] = from_float<P>(valid ? to_float(in.values[j]) : 0.0f);
    }
    store<P, N>(out + r * out_row + i, result);
  }
}

// Two element types at once. Packs hold as many elements as 16 bytes of the wider one.
template <class F>
cudaError_t dispatch_two(DType first, DType second, bool packable, F&& f) {
  return dispatch_float(first, [&](auto a) {
    return dispatch_float(second, [&](auto b) {
      constexpr int kA = kFullPack<decltype(a)>, kB = kFullPack<decltype(b)>;
      constexpr int kPack = kA < kB ? kA : kB;
      if (packable) return f(a, b, std::integral_constant<int, kPack>{});
      return f(a, b, std::integral_constant<int, 1>{});
    });
  });
}

unsigned threads_for(int64_t packs) {
  unsigned threads = 32;
  while (threads < 256 && threads < packs) threads *= 2;
  return threads;
}

}  // namespace

cudaError_t built_for_this_device() {
  cudaFuncAttributes attributes{};
  return cudaFuncGetAttributes(&attributes, softcap_kernel<float>);
}

cudaError_t rope(Rows q, Rows k, const int32_t* positions, const float* cos_sin, int64_t rotary,
                 cudaStream_t stream) {
  if (q.rows == 0) return cudaSuccess;
  return dispatch_float(q.dtype, [&](auto tag) {
    using T = decltype(tag);
    const unsigned threads = threads_for((q.heads + k.heads) * rotary / 2);
    rope_kernel<<<unsigned(q.rows), threads, 0, stream>>>(
        static_cast<T*>(q.data), static_cast<T*>(k.data), positions, cos_sin, int(q.heads),
        int(k.heads), q.row_stride, q.head_stride, k.row_stride, k.head_stride, int(rotary));
    return cudaGetLastError();
  });
}

cudaError_t gated_activation(Gate gate, Rows y, Rows gate_up, cudaStream_t stream) {
  if (y.rows * y.dim == 0) return cudaSuccess;
  return dispatch_float(y.dtype, [&](auto tag) {
    using T = decltype(tag);
    auto launch = [&](auto kernel, int pack) {
      const unsigned blocks = blocks_for(y.rows * (y.dim / pack), 256);
      kernel<<<blocks, 256, 0, stream>>>(static_cast<T*>(y.data),
                                         static_cast<const T*>(gate_up.data), y.rows, int(y.dim),
                                         y.row_stride, gate_up.row_stride);
      return cudaGetLastError();
    };
    constexpr int kPack = kFullPack<T>;
    const bool packed = is_packable(y) && is_packable(gate_up);
    if (gate == Gate::kSilu) {
      return packed ? launch(gate_kernel<T, kPack, Silu>, kPack)
                    : launch(gate_kernel<T, 1, Silu>, 1);
    }
    return packed ? launch(gate_kernel<T, kPack, GeluTanh>, kPack)
                  : launch(gate_kernel<T, 1, GeluTanh>, 1);
  });
}

cudaError_t softcap(Rows x, float cap, cudaStream_t stream) {
  if (x.rows * x.dim == 0) return cudaSuccess;
  return dispatch_float(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    softcap_kernel<<<blocks_for(x.rows * x.dim, 256), 256, 0, stream>>>(
        static_cast<T*>(x.data), x.rows, x.dim, x.row_stride, cap);
    return cudaGetLastError();
  });
}

cudaError_t store_kv_pair(Rows k_pool, Rows v_pool, Rows k, Rows v, const int32_t* loc,
                          cudaStream_t stream) {
  if (k.rows == 0) return cudaSuccess;
  const bool both = v_pool.data != nullptr;
  const bool packable =
      is_packable(k_pool) && is_packable(k) && (!both || (is_packable(v_pool) && is_packable(v)));
  return dispatch_two(k_pool.dtype, k.dtype, packable, [&](auto p, auto t, auto pack) {
    using P = decltype(p);
    using T = decltype(t);
    constexpr int kPack = decltype(pack)::value;
    store_kv_kernel<P, T, kPack>
        <<<dim3(unsigned(k.rows), both ? 2 : 1), threads_for(k.heads * k.dim / kPack), 0, stream>>>(
            static_cast<P*>(k_pool.data), static_cast<P*>(v_pool.data),
            static_cast<const T*>(k.data), static_cast<const T*>(v.data), loc, k_pool.rows,
            int(k.heads), int(k.dim), k.row_stride, k.head_stride, v.row_stride, v.head_stride);
    return cudaGetLastError();
  });
}

cudaError_t store_kv(Rows pool, Rows rows, const int32_t* loc, cudaStream_t stream) {
  return store_kv_pair(pool, Rows{}, rows, Rows{}, loc, stream);
}

cudaError_t gather_rows(Rows out, Rows table, const int32_t* ids, cudaStream_t stream) {
  if (out.rows == 0) return cudaSuccess;
  const bool packable = is_packable(out) && is_packable(table);
  return dispatch_two(out.dtype, table.dtype, packable, [&](auto p, auto t, auto pack) {
    using P = decltype(p);
    using T = decltype(t);
    constexpr int kPack = decltype(pack)::value;
    gather_kernel<P, T, kPack><<<unsigned(out.rows), threads_for(out.dim / kPack), 0, stream>>>(
        static_cast<P*>(out.data), static_cast<const T*>(table.data), ids, table.rows, int(out.dim),
        out.row_stride, table.row_stride);
    return cudaGetLastError();
  });
}

cudaError_t convert(Rows out, Rows in, cudaStream_t stream) {
  return gather_rows(out, in, nullptr, stream);
}

}  // namespace minisgl::cuda
