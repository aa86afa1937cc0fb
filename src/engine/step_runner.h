// What a scheduler drives: the engine, or a mock that computes nothing.
#pragma once

#include <cstdint>

#include "engine/step.h"
#include "tensor/tensor.h"

namespace minisgl {

// prepare(), launch() and wait() are called by the scheduler's thread. Steps run one after another
// in the order of their launch; at most two are launched and not yet waited for.
class StepRunner {
 public:
  struct Limits {
    int64_t num_pages = 0;
    int64_t page_size = 1;
    int64_t max_seq_len = 0;
    int64_t max_running_requests = 0;
    int64_t max_prefill_tokens = 0;   // new tokens in a step, decode rows beside them not counted
    int64_t max_scored_tokens = 512;  // of them, tokens of requests that want prompt_logprobs
    int64_t vocab_size = 0;
  };

  virtual ~StepRunner() = default;
  virtual Limits limits() const = 0;
  // [max_running_requests + 1, >= max_seq_len] int32 on the host: token locations, and the tokens
  // themselves. The scheduler writes rows of requests that no launched step mentions, and columns
  // that none reads.
  virtual TensorView page_table() const = 0;
  virtual TensorView token_pool() const = 0;

  // Describes what was batched (step.batch.reqs, .phase; locations are in the page table) and
  // advances the requests: from here on the step is self-contained.
  virtual void prepare(Step& step) = 0;
  virtual void launch(Step& step) = 0;
  // Returns when the step is done. Errors: what its computation threw.
  virtual void wait(Step& step) = 0;
};

}  // namespace minisgl
