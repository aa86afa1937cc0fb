// Whether sampling parameters are in their ranges.
#pragma once

#include <cstdint>

#include "core/sampling.h"

namespace minisgl {

// Errors: kInvalidArgument with the parameter, its range and what was found. Stop strings are the
// detokenizer's to check, and n is not looked at: a request is one sample, see message/samples.h.
void check_sampling(const SamplingParams& params, int64_t vocab_size);

}  // namespace minisgl
