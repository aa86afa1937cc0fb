// The definition of attention over pages, and the same data flow with a device's own kernel.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "attention/backend.h"
#include "attention/metadata.h"
#include "core/batch.h"
#include "kernel/kernels.h"
#include "kvcache/kv_pool.h"
#include "tensor/tensor.h"

namespace minisgl {

// What paged_attention() reads: the host vectors themselves on the CPU, copies on a GPU, or the
// static buffers of a captured graph.
struct PagedMetadata : AttentionMetadata {
  TensorView lengths_q;                     // cu_seqlens_q
  TensorView lengths_k;                     // cache_seqlens
  TensorView table;                         // page_table
  bool is_current = false;                  // the views hold this batch's values
  bool is_static = false;                   // a captured graph's
  Tensor device_q, device_k, device_table;  // on a GPU; grow, never shrink
};

// Stores K and V in the pool, then calls Kernels::paged_attention once for the whole batch, prefill
// and decode alike. Works with any Kernels object; on a GPU the metadata goes up once a batch, in
// the first layer.
//
// Threads: prepare_metadata() touches the batch only, so that one thread may prepare a batch while
// another runs forward() of an earlier one. The rest belongs to the thread that runs forward().
class PagedBackend : public AttentionBackend {
 public:
  // `kernels` attends, the pool stores; both outlive the backend.
  PagedBackend(std::string name, Kernels& kernels, KVPool& pool);
  // The same, with kernels of its own.
  PagedBackend(std::string name, std::unique_ptr<Kernels> kernels, KVPool& pool);

  std::string_view name() const override { return name_; }
  void prepare_metadata(Batch& batch) override;
  void forward(TensorView out, TensorView q, TensorView k, TensorView v, const AttentionSpec& spec,
               Batch& batch) override;
  void init_capture_graph(int64_t max_seq_len, std::span<const int> batch_sizes) override;
  void prepare_for_capture(Batch& batch) override;
  void prepare_for_replay(Batch& batch) override;

 private:
  // Inputs of every captured size: a size's graph reads the first bs rows.
  struct CaptureBuffers {
    std::vector<int> batch_sizes;
    int64_t max_seq_len;
    Tensor cu_seqlens_q;   // [max_bs + 1] constant: 0, 1, …
    Tensor cache_seqlens;  // [max_bs]
    Tensor page_table;     // [max_bs, max_seq_len]
  };

  PagedMetadata& metadata_of(const Batch& batch) const;
  void make_current(PagedMetadata& metadata);
  void copy_to_static(PagedMetadata& metadata);

  std::string name_;
  std::unique_ptr<Kernels> owned_;
  Kernels& kernels_;
  KVPool& pool_;
  std::optional<CaptureBuffers> capture_;
};

// "reference": on the CPU the plain loops of make_reference_kernels(), whatever `kernels` is; on a
// GPU (float32) the plain kernel of `kernels`.
std::unique_ptr<AttentionBackend> make_reference_backend(Kernels& kernels, KVPool& pool);
// "cpu": the CPU's kernel for the instruction set that `kernels` was made for.
std::unique_ptr<AttentionBackend> make_cpu_backend(Kernels& kernels, KVPool& pool);

}  // namespace minisgl
