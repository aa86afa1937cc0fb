#include "engine/null_runner.h"

#include "attention/metadata.h"
#include "utils/math.h"

namespace minisgl {

NullRunner::NullRunner(const Limits& limits) : limits_(limits) {
  const int64_t shape[] = {limits.max_running_requests + 1,
                           align_up(limits.max_seq_len, limits.page_size)};
  page_table_ = Tensor::zeros(DType::kInt32, shape);
  token_pool_ = Tensor::zeros(DType::kInt32, shape);
}

void NullRunner::prepare(Step& step) {
  Batch& batch = step.batch;
  batch.padded_reqs.assign(batch.reqs.begin(), batch.reqs.end());
  step.token_rows.clear();
  step.positions.clear();
  step.out_loc.clear();
  for (const Req* req : batch.reqs) {
    const int32_t* locations = page_table_.view().select(req->table_idx).data<int32_t>();
    for (int64_t position = req->cached_len; position < req->device_len; ++position) {
      step.token_rows.push_back(req->table_idx);
      step.positions.push_back(static_cast<int32_t>(position));
      step.out_loc.push_back(locations[position]);
    }
  }
  step.input_ids.resize(step.positions.size());
  batch.input_ids = TensorView::of<int32_t>(step.input_ids);
  batch.positions = TensorView::of<int32_t>(step.positions);
  batch.out_loc = TensorView::of<int32_t>(step.out_loc);
  batch.page_table = page_table_;
  if (!batch.attn_metadata) batch.attn_metadata = std::make_unique<AttentionMetadata>();
  fill_metadata(*batch.attn_metadata, batch);
  batch.attn_metadata->last_indices(step.logit_rows, batch.size());

  step.next_tokens.assign(batch.size(), -1);
  for (size_t i = 0; i < batch.size(); ++i) {
    if (batch.reqs[i]->device_len >= batch.reqs[i]->prefill_len) step.next_tokens[i] = 0;
    batch.reqs[i]->complete_one();
  }
}

void NullRunner::launch(Step& step) { step.began = step.ended = std::chrono::steady_clock::now(); }

}  // namespace minisgl
