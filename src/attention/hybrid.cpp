#include "attention/hybrid.h"

#include <algorithm>
#include <utility>

#include "utils/error.h"

namespace minisgl {

HybridBackend::HybridBackend(std::unique_ptr<AttentionBackend> prefill,
                             std::unique_ptr<AttentionBackend> decode)
    : prefill_(std::move(prefill)),
      decode_(std::move(decode)),
      name_(fmt::format("{},{}", prefill_->name(), decode_->name())) {}

void HybridBackend::prepare_metadata(Batch& batch) {
  AttentionBackend& backend = backend_of(batch.phase);
  exchange_metadata(batch, backend);
  backend.prepare_metadata(batch);
}

// Leaves the batch with metadata that `wanted` made, or with none.
void HybridBackend::exchange_metadata(Batch& batch, const AttentionBackend& wanted) {
  if (batch.attn_metadata && batch.attn_metadata->made_by == &wanted) return;
  const auto fitting = std::ranges::find_if(
      spare_, [&](const auto& metadata) { return metadata->made_by == &wanted; });
  if (fitting != spare_.end()) {
    std::swap(batch.attn_metadata, *fitting);
    if (*fitting == nullptr) spare_.erase(fitting);
  } else if (batch.attn_metadata) {
    spare_.push_back(std::move(batch.attn_metadata));
  }
}

void HybridBackend::forward(TensorView out, TensorView q, TensorView k, TensorView v,
                            const AttentionSpec& spec, Batch& batch) {
  backend_of(batch.phase).forward(out, q, k, v, spec, batch);
}

void HybridBackend::init_capture_graph(int64_t max_seq_len, std::span<const int> batch_sizes) {
  decode_->init_capture_graph(max_seq_len, batch_sizes);
}
void HybridBackend::prepare_for_capture(Batch& batch) { decode_->prepare_for_capture(batch); }
void HybridBackend::prepare_for_replay(Batch& batch) { decode_->prepare_for_replay(batch); }

}  // namespace minisgl
