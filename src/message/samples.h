// One prompt, several answers.
#pragma once

#include <vector>

#include "message/requests.h"

namespace minisgl {

// The n requests that answer `request.sampling_params.n` times: each draws with a seed of its own
// that follows from the request's and its index (sample 0 draws what n = 1 would), and only the
// first reports the prompt's log-probabilities. Submitted together they share the computation of
// their prompt through the prefix cache. Their uids are the caller's to set.
// Errors: kInvalidArgument (n out of [1, kMaxSamples]).
std::vector<GenerateRequest> samples_of(GenerateRequest request);

}  // namespace minisgl
