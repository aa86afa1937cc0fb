// Which rows' logits a step computes, and what for.
#pragma once

#include <cstdint>
#include <span>

#include "engine/step.h"

namespace minisgl {

// Fills step.logit_rows, samples and logprob_rows, and makes room in step.logprobs, from the
// requests of step.batch as they are before they advance. A request costs one row, its last; one
// that wants prompt_logprobs costs a row for every token of the prompt that this step computes.
// cu_seqlens_q: [padded_size + 1], as in AttentionMetadata. default_seed: with its uid gives the
// seed of a request that brings none.
void describe_outputs(Step& step, std::span<const int32_t> cu_seqlens_q, uint64_t default_seed);

}  // namespace minisgl
