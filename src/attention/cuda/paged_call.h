// One layer's attention over a batch, as the vendor kernels see it: plain pointers and sizes.
// Included by .cu files of C++17, so nothing of the engine appears here.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace minisgl::cuda {

// bfloat16 everywhere. Device pointers unless the name ends in _host. Pages are [page_size, Hkv, D]
// in one pool for K and one for V; queries are ragged; masks are causal, bottom-right aligned.
struct PagedCall {
  const void* q = nullptr;  // [T, Hq, D], rows q_stride elements apart
  void* out = nullptr;      // [T, Hq, D], rows out_stride elements apart
  const void* k_pool = nullptr;
  const void* v_pool = nullptr;
  int64_t q_stride = 0;
  int64_t out_stride = 0;

  int batch = 0;
  int num_tokens = 0;  // T
  int max_seqlen_q = 0;
  int max_seqlen_k = 0;
  int num_qo_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  int page_size = 0;
  int num_pages = 0;

  const int32_t* cu_seqlens_q = nullptr;   // [batch + 1]
  const int32_t* cache_seqlens = nullptr;  // [batch]
  const int32_t* page_table = nullptr;     // [batch, page_table_stride] page numbers
  int page_table_stride = 0;
  const int32_t* page_indptr = nullptr;    // [batch + 1]: the same pages as CSR
  const int32_t* page_indices = nullptr;   // [page_indptr[batch]]
  const int32_t* last_page_len = nullptr;  // [batch]
  const int32_t* cu_seqlens_q_host = nullptr;
  const int32_t* cache_seqlens_host = nullptr;
  const int32_t* page_indptr_host = nullptr;

  float scale = 1.0f;
  float softcap = 0.0f;          // 0: none
  int window_left = -1;          // keys left of the query, itself excluded; -1: all
  const float* sinks = nullptr;  // [Hq], or null
};

// Scratch at fixed addresses. `ints_host` mirrors `ints` in page-locked memory.
struct Workspace {
  void* floats = nullptr;
  size_t floats_bytes = 0;
  void* ints = nullptr;
  void* ints_host = nullptr;
  size_t ints_bytes = 0;
};

}  // namespace minisgl::cuda
