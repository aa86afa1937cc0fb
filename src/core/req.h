// One request as the scheduler and the batch see it.
#pragma once

#include <cstdint>
#include <vector>

#include "minisgl/sampling_params.h"
#include "utils/error.h"

namespace minisgl {

// Invariant whenever it is batched: 0 <= cached_len < device_len <= max_device_len, so that every
// step computes at least one token. device_len <= input_ids.size(), + 1 while a step is in flight.
//
//   [0, cached_len)           K and V are in the pool
//   [cached_len, device_len)  computed by this step: extend_len() tokens
//   [device_len, max)         still to come
struct Req {
  int64_t uid = -1;
  std::vector<int32_t> input_ids;  // prompt, then what was generated; grows by one a step
  int64_t prompt_len = 0;
  int64_t prefill_len = 0;  // tokens known when it was (re)admitted: no sampling before they are in
  int32_t table_idx = -1;   // row of the page table
  int64_t cached_len = 0;
  int64_t device_len = 0;
  int64_t max_device_len = 0;  // prompt + max_tokens
  SamplingParams sampling_params;
  std::vector<int32_t> eos_token_ids;
  // Of a request that wants prompt_logprobs: [0, scored_len) of the prompt are positions whose next
  // token's log-probability is known; the last has none.
  int64_t scored_len = 0;

  int64_t extend_len() const { return device_len - cached_len; }
  int64_t remain_len() const { return max_device_len - device_len; }
  bool can_decode() const { return remain_len() > 0; }
  // Positions of the prompt are still to be computed for their log-probabilities, cached or not.
  bool scores_prompt() const {
    return sampling_params.prompt_logprobs && scored_len < prompt_len - 1;
  }

  // At launch, before the sampled value is known: this step's tokens are in the pool from here on,
  // and the next step computes one more.
  void complete_one() {
    MINISGL_CHECK(0 <= cached_len && cached_len < device_len && device_len <= max_device_len,
                  "request {}: cached {}, device {}, max {}", uid, cached_len, device_len,
                  max_device_len);
    cached_len = device_len;
    device_len += 1;
  }
};

}  // namespace minisgl
