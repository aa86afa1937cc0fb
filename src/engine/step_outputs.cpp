#include "engine/step_outputs.h"

#include <algorithm>

#include "utils/random.h"

namespace minisgl {
namespace {

struct Positions {
  int64_t begin, end;
};

// Computed by this step, and the next token is of the prompt and not scored yet.
Positions scored_positions(const Req& req) {
  if (!req.scores_prompt()) return {0, 0};
  return {std::max(req.cached_len, req.scored_len), std::min(req.device_len, req.prompt_len - 1)};
}

class Outputs {
 public:
  Outputs(Step& step, uint64_t default_seed) : step_(step), default_seed_(default_seed) {
    step.logit_rows.clear();
    step.samples.clear();
    step.logprob_rows.clear();
  }

  // first_row: of the batch's tokens.
  void add(int32_t index, const Req& req, int32_t first_row) {
    const Positions scored = scored_positions(req);
    int64_t position = req.device_len - 1;
    if (scored.begin < scored.end) position = std::min(position, scored.begin);
    if (step_.all_logits) position = req.cached_len;
    for (; position < req.device_len; ++position) {
      step_.logit_rows.push_back(first_row + static_cast<int32_t>(position - req.cached_len));
      if (position < scored.begin || position >= scored.end) continue;
      add_logprobs(index, req, position + 1, *req.sampling_params.prompt_logprobs, true);
    }
    if (static_cast<size_t>(index) < step_.batch.size() && req.device_len >= req.prefill_len) {
      add_sample(index, req);
    }
  }

  void finish() { step_.logprobs.resize(num_logprobs_); }

 private:
  int32_t last_row() const { return static_cast<int32_t>(step_.logit_rows.size()) - 1; }

  void add_sample(int32_t index, const Req& req) {
    const SamplingParams& params = req.sampling_params;
    step_.samples.push_back(
        {.request = index,
         .logit_row = last_row(),
         .table_idx = req.table_idx,
         .position = req.device_len,
         .params = &params,
         .seed = params.seed ? *params.seed
                             : random_bits(default_seed_, static_cast<uint64_t>(req.uid)),
         .prompt_len = req.prompt_len,
         .eos_token_ids = req.eos_token_ids});
    if (params.logprobs) add_logprobs(index, req, req.device_len, *params.logprobs, false);
  }

  void add_logprobs(int32_t index, const Req& req, int64_t position, int64_t num_top,
                    bool of_prompt) {
    step_.logprob_rows.push_back({.request = index,
                                  .logit_row = last_row(),
                                  .table_idx = req.table_idx,
                                  .position = position,
                                  .of_prompt = of_prompt,
                                  .first = num_logprobs_,
                                  .num_top = num_top});
    num_logprobs_ += 1 + static_cast<size_t>(num_top);
  }

  Step& step_;
  uint64_t default_seed_;
  size_t num_logprobs_ = 0;
};

}  // namespace

void describe_outputs(Step& step, std::span<const int32_t> cu_seqlens_q, uint64_t default_seed) {
  Outputs outputs(step, default_seed);
  for (size_t i = 0; i < step.batch.padded_size(); ++i) {
    outputs.add(static_cast<int32_t>(i), *step.batch.padded_reqs[i], cu_seqlens_q[i]);
  }
  outputs.finish();
}

}  // namespace minisgl
