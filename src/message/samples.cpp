#include "message/samples.h"

#include "utils/error.h"
#include "utils/random.h"

namespace minisgl {

std::vector<GenerateRequest> samples_of(GenerateRequest request) {
  SamplingParams& params = request.sampling_params;
  const int64_t n = params.n;
  if (n < 1 || n > kMaxSamples) {
    throw_error(ErrorKind::kInvalidArgument, "n must be from 1 to {}, found {}", kMaxSamples, n);
  }
  params.n = 1;
  std::vector<GenerateRequest> samples;
  samples.push_back(std::move(request));
  for (int64_t i = 1; i < n; ++i) {
    // A stream apart from the one that tokens are drawn from.
    constexpr uint64_t kSampleSeeds = 1;
    GenerateRequest sample = samples.front();
    SamplingParams& own = sample.sampling_params;
    if (own.seed) own.seed = random_bits(*own.seed, static_cast<uint64_t>(i), kSampleSeeds);
    own.prompt_logprobs.reset();
    samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace minisgl
