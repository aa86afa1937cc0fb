// One backend for prefill, another for decode.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "attention/backend.h"

namespace minisgl {

// Batches whose phase is prefill go to `prefill` (mixed ones too), the others to `decode`; so do
// the graph hooks. Threads: as AttentionBackend says.
class HybridBackend : public AttentionBackend {
 public:
  HybridBackend(std::unique_ptr<AttentionBackend> prefill,
                std::unique_ptr<AttentionBackend> decode);

  std::string_view name() const override { return name_; }  // "fa,cudnn"
  void prepare_metadata(Batch& batch) override;
  void forward(TensorView out, TensorView q, TensorView k, TensorView v, const AttentionSpec& spec,
               Batch& batch) override;
  void init_capture_graph(int64_t max_seq_len, std::span<const int> batch_sizes) override;
  void prepare_for_capture(Batch& batch) override;
  void prepare_for_replay(Batch& batch) override;

 private:
  AttentionBackend& backend_of(Phase phase) {
    return phase == Phase::kPrefill ? *prefill_ : *decode_;
  }
  void exchange_metadata(Batch& batch, const AttentionBackend& wanted);

  std::unique_ptr<AttentionBackend> prefill_;
  std::unique_ptr<AttentionBackend> decode_;
  std::string name_;
  // Metadata of batches that changed their phase, for the next one of that phase: both kinds exist
  // once a batch in flight, and nothing allocates after that. Used by prepare_metadata() alone.
  std::vector<std::unique_ptr<AttentionMetadata>> spare_;
};

}  // namespace minisgl
