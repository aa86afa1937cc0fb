// Log-probabilities of tokens, as answers report them.
#pragma once

#include <cstdint>
#include <vector>

namespace minisgl {

// No less is reported: every number is finite, also for a token that the model rules out.
inline constexpr float kLeastLogprob = -9999.0f;

struct TokenLogprob {
  int32_t token = -1;
  float logprob = 0.0f;  // natural logarithm; [kLeastLogprob, 0]
};

// One position: the token that stands there, and the most likely ones, most likely first (lowest
// id first of equals). Both of the model's own distribution, at temperature 1 and before anything
// that SamplingParams does to it.
struct PositionLogprobs {
  TokenLogprob token;
  std::vector<TokenLogprob> top{};
};

}  // namespace minisgl
