// A ragged, paged batch on the GPU: page numbers instead of token locations, in the two forms that
// kernels ask for, uploaded in one page-locked copy.
//
//   locations of a request, pages of 4   [20 21 22 23 | 40 41]
//   page_indptr / page_indices           CSR: … 5, 10 …      last_page_len 2
//   page_table                           [5, 10, -, -]       a row a request
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "attention/cuda/paged_call.h"
#include "attention/metadata.h"
#include "kernel/cuda/cuda_kernels.h"
#include "tensor/tensor.h"

namespace minisgl::cuda {

// What forward() needs beside the lengths. Host side filled by build(), device side by upload().
class GpuBatch : public AttentionMetadata {
 public:
  // Host only, so that a batch may be prepared while another runs. round_table_width: the page
  // table's width is a power of two, for kernels that are compiled for it.
  void build(const Batch& batch, int64_t page_size, bool round_table_width = false);
  bool is_current() const { return is_current_; }
  bool is_static() const { return static_lengths_ != nullptr; }  // a captured graph's
  void upload(CudaKernels& kernels);
  // The lengths, pages and sizes of the batch; tensors and the layer's properties are left open.
  PagedCall call() const;

 private:
  friend class StaticGpuBatch;
  // Where each array begins in `packed_`, in elements, with room for `capacity` requests.
  struct Sections {
    explicit Sections(int64_t capacity);
    int64_t cu_seqlens_q, cache_seqlens, page_indptr, last_page_len, page_indices;
  };
  void pack_lengths(const Batch& batch, int64_t page_size);
  const int32_t* at(int64_t section) const;

  int64_t batch_size() const { return static_cast<int64_t>(cache_seqlens.size()); }

  int64_t page_size_ = 1;
  int64_t num_tokens_ = 0;
  int64_t max_pages_ = 0;        // of one request: columns of the table
  int64_t table_ = 0;            // where the page table begins in packed_
  std::vector<int32_t> packed_;  // the sections, then page_table [bs, max_pages]
  bool is_current_ = false;
  Tensor device_;  // the same; grows, never shrinks

  // A captured graph's batch looks at static memory instead.
  const int32_t* static_lengths_ = nullptr;
  const int32_t* static_table_ = nullptr;
  int64_t static_capacity_ = 0;
  int64_t static_stride_ = 0;
};

// The memory that captured decode graphs read: one for all batch sizes, at fixed addresses.
class StaticGpuBatch {
 public:
  StaticGpuBatch(CudaKernels& kernels, int64_t max_seq_len, int64_t page_size,
                 std::span<const int> batch_sizes);

  // Makes `batch` (built) read the static memory, at the sizes that any replay may bring. It is the
  // captured batch of its size from now on and outlives this object's use.
  void bind(GpuBatch& batch);
  // The values of a prepared batch go into the static memory, and its host side into the captured
  // batch of that size, which is returned (null while nothing of that size is captured).
  GpuBatch* refresh(const GpuBatch& batch);

 private:
  CudaKernels& kernels_;
  int64_t max_seq_len_;
  int64_t capacity_ = 0;  // requests
  int64_t stride_;        // pages a row
  std::vector<int> batch_sizes_;
  std::vector<GpuBatch*> captured_;
  Tensor lengths_, table_;
  std::vector<int32_t> packed_;
};

}  // namespace minisgl::cuda
