#include "engine/graph_runner.h"

#include <algorithm>
#include <cstring>

#include "utils/error.h"

namespace minisgl {
namespace {

// On a GPU a step's inputs are uploaded to the static ones: nothing is left to copy.
void copy_values(TensorView to, TensorView from) {
  if (to.raw() == from.raw()) return;
  MINISGL_CHECK(to.device().is_cpu() && from.device().is_cpu());
  std::memcpy(to.raw(), from.raw(), static_cast<size_t>(from.bytes()));
}

}  // namespace

std::vector<int> graph_batch_sizes(int64_t max_bs) {
  std::vector<int> sizes;
  for (const int small : {1, 2, 4}) {
    if (small <= max_bs) sizes.push_back(small);
  }
  for (int size = 8; size <= max_bs; size += 8) sizes.push_back(size);
  if (!sizes.empty() && sizes.back() < max_bs) sizes.push_back(static_cast<int>(max_bs));
  return sizes;
}

GraphRunner::GraphRunner(std::vector<int> sizes, Kernels& kernels, const DeviceInputs& inputs,
                         AttentionBackend& backend, Req& dummy, int64_t max_seq_len,
                         TensorView page_table, Forward forward)
    : sizes_(std::move(sizes)),
      kernels_(kernels),
      backend_(backend),
      dummy_(dummy),
      page_table_(page_table),
      forward_(std::move(forward)) {
  if (sizes_.empty()) return;
  make_inputs(inputs);
  backend_.init_capture_graph(max_seq_len, sizes_);
  captured_.resize(sizes_.size());
  for (size_t i = sizes_.size(); i-- > 0;) {
    captured_[i].size = sizes_[i];
    capture(captured_[i]);
  }
}

void GraphRunner::make_inputs(const DeviceInputs& inputs) {
  if (!kernels_.device().is_cpu()) {
    input_ids_ = inputs.input_ids();
    positions_ = inputs.positions();
    out_loc_ = inputs.out_loc();
    return;
  }
  for (TensorView* view : {&input_ids_, &positions_, &out_loc_}) {
    memory_.push_back(Tensor::zeros(DType::kInt32, {sizes_.back()}));
    *view = memory_.back();
  }
}

void GraphRunner::capture(Captured& captured) {
  Batch& batch = captured.batch;
  batch.phase = Phase::kDecode;
  batch.padded_reqs.assign(static_cast<size_t>(captured.size), &dummy_);
  batch.input_ids = input_ids_.slice(0, captured.size);
  batch.positions = positions_.slice(0, captured.size);
  batch.out_loc = out_loc_.slice(0, captured.size);
  batch.page_table = page_table_;
  std::vector<int32_t> dummy_loc(
      static_cast<size_t>(captured.size),
      page_table_.select(dummy_.table_idx).data<int32_t>()[dummy_.cached_len]);
  kernels_.copy(batch.out_loc, TensorView::of(std::span(dummy_loc)));
  backend_.prepare_for_capture(batch);
  captured.graph =
      kernels_.record([this, &captured] { captured.logits = forward_(captured.batch); });
}

bool GraphRunner::can_use(const Batch& batch) const {
  return !sizes_.empty() && batch.phase == Phase::kDecode &&
         static_cast<int>(batch.size()) <= sizes_.back();
}

void GraphRunner::pad(Batch& batch) const {
  batch.padded_reqs.assign(batch.reqs.begin(), batch.reqs.end());
  if (!can_use(batch)) return;
  const auto size = std::lower_bound(sizes_.begin(), sizes_.end(), static_cast<int>(batch.size()));
  batch.padded_reqs.resize(static_cast<size_t>(*size), &dummy_);
}

TensorView GraphRunner::replay(Batch& batch) {
  const auto size = static_cast<int>(batch.padded_size());
  const auto captured =
      std::find_if(captured_.begin(), captured_.end(),
                   [size](const Captured& candidate) { return candidate.size == size; });
  MINISGL_CHECK(captured != captured_.end(), "no graph of size {} was captured", size);
  copy_values(captured->batch.input_ids, batch.input_ids);
  copy_values(captured->batch.positions, batch.positions);
  copy_values(captured->batch.out_loc, batch.out_loc);
  backend_.prepare_for_replay(batch);
  captured->graph->run();
  return captured->logits;
}

}  // namespace minisgl
