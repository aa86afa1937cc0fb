// Log-probabilities of a row of logits.
#pragma once

#include <cstdint>
#include <span>

#include "minisgl/logprobs.h"

namespace minisgl {

// log softmax(logits), summed in float64. out[0]: `token`; out[1 …]: the most likely ones, most
// likely first, the lowest id first of equals. Always finite, whatever the logits are: NaN counts
// as the smallest, and nothing is below kLeastLogprob. logits: [V], out: [1 … V + 1].
void report_logprobs(std::span<const float> logits, int32_t token, std::span<TokenLogprob> out);

}  // namespace minisgl
