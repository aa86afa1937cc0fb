// The promise of every attention backend: read this first, then reference.cpp.
//
// Once a batch the metadata describes the ragged, paged batch; once a layer K and V are written to
// the pool and then read. Names, pairs and "auto" are in registry.h.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/attention_spec.h"
#include "core/batch.h"
#include "tensor/tensor.h"

namespace minisgl {

// prepare_metadata() touches nothing that forward() of another batch reads: under overlap one
// thread prepares batch n + 1 while another runs batch n. The rest belongs to the thread that runs
// forward(). Nothing allocates after the first step of a given size.
class AttentionBackend {
 public:
  virtual ~AttentionBackend() = default;
  virtual std::string_view name() const = 0;

  // Once a batch: turns batch.padded_reqs and batch.page_table into what the kernel wants; the
  // result goes to batch.attn_metadata (reused when the batch already has one of this backend's).
  virtual void prepare_metadata(Batch& batch) = 0;

  // Once a layer: writes k, v [T, Hkv, D] at batch.out_loc, then attends. q, out: [T, Hq, D]; rows
  // may be strided. Causal, bottom-right aligned; see PagedAttentionArgs for the equation.
  virtual void forward(TensorView out, TensorView q, TensorView k, TensorView v,
                       const AttentionSpec& spec, Batch& batch) = 0;

  // Graphs (decode only): static buffers, one capture a batch size, values refreshed before each
  // replay. Capture: `batch` is the static batch that the captured forward passes will read; it
  // gets this backend's static metadata of batch.padded_size() requests as batch.attn_metadata.
  // Replay: `batch` is the real one, already prepared; the values of its attn_metadata are copied
  // into the static metadata of its padded size (its Reqs have advanced by then and are not looked
  // at).
  virtual void init_capture_graph(int64_t max_seq_len, std::span<const int> batch_sizes) = 0;
  virtual void prepare_for_capture(Batch& batch) = 0;
  virtual void prepare_for_replay(Batch& batch) = 0;
};

}  // namespace minisgl
