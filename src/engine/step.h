// One scheduled step: the batch, its inputs as they go to the device, and its results. Everything
// in it stays alive until the results are handled; recycled, so that the steady state allocates
// nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <span>
#include <vector>

#include "core/batch.h"
#include "core/sampling.h"
#include "minisgl/logprobs.h"

namespace minisgl {

// How the token after a row of logits is chosen. Copied from the request when the step is prepared:
// a step in flight does not look at requests.
struct SampleRow {
  int32_t request = 0;    // index in batch.reqs
  int32_t logit_row = 0;  // row of the logits
  int32_t table_idx = 0;  // where the token goes in the token pool …
  int64_t position = 0;   // … and at which position; also the counter of its random draw
  const SamplingParams* params = nullptr;
  uint64_t seed = 0;
  int64_t prompt_len = 0;  // tokens from here to `position` are the answer
  std::span<const int32_t> eos_token_ids{};
};

// A token whose log-probability is reported: the sampled one, or one of the prompt.
struct LogprobRow {
  int32_t request = 0;    // index in batch.reqs
  int32_t logit_row = 0;  // row of the logits that the token was or would have been drawn from
  int32_t table_idx = 0;  // row of the token pool …
  int64_t position = 0;   // … and position of the token
  bool of_prompt = false;
  size_t first = 0;     // where its results begin in Step::logprobs: the token's, then …
  int64_t num_top = 0;  // … those of the most likely ones
};

struct Step {
  Batch batch;

  // Filled by Engine::prepare().
  std::vector<int32_t> token_rows;       // [T] row of the token pool each input id is read from
  std::vector<int32_t> input_ids;        // [T] read from the token pool when the step runs
  std::vector<int32_t> positions;        // [T]
  std::vector<int32_t> out_loc;          // [T]
  std::vector<int32_t> logit_rows;       // rows of T whose logits are computed
  std::vector<SampleRow> samples;        // requests whose prompt is complete
  std::vector<LogprobRow> logprob_rows;  // by request, by position
  bool all_logits = false;               // set by the caller: logits of every row (a few hundred)

  // Filled when it has run.
  std::vector<int32_t> next_tokens;    // [batch.size()]; -1: none sampled (a chunk of a prompt)
  std::vector<TokenLogprob> logprobs;  // of logprob_rows, one after another
  TensorView logits;                   // [rows, V] float32, good until the next step runs
  std::exception_ptr error;            // what running it threw, if it did
  uint32_t ticket = 0;                 // its number among the steps launched
  // When its computation began and ended; equal where the runner does not say.
  std::chrono::steady_clock::time_point began{}, ended{};
};

}  // namespace minisgl
