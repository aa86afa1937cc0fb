#include "engine/logprobs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "utils/error.h"

namespace minisgl {
namespace {

float finite(float logit) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  return std::isnan(logit) ? -kLargest : std::clamp(logit, -kLargest, kLargest);
}

double log_sum_exp(std::span<const float> logits) {
  double largest = finite(logits[0]);
  for (const float logit : logits) largest = std::max<double>(largest, finite(logit));
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(finite(logit) - largest);
  return largest + std::log(sum);
}

// top: [n] gets the n largest logits, largest first. Few are wanted, so that nearly every logit is
// below the last of them.
void find_largest(std::span<const float> logits, std::span<TokenLogprob> top) {
  size_t found = 0;
  for (size_t id = 0; id < logits.size(); ++id) {
    const float logit = finite(logits[id]);
    if (found == top.size() && logit <= top.back().logprob) continue;
    size_t at = found < top.size() ? found++ : found - 1;
    for (; at > 0 && top[at - 1].logprob < logit; --at) top[at] = top[at - 1];
    top[at] = {.token = static_cast<int32_t>(id), .logprob = logit};
  }
}

}  // namespace

void report_logprobs(std::span<const float> logits, int32_t token, std::span<TokenLogprob> out) {
  MINISGL_CHECK(token >= 0 && static_cast<size_t>(token) < logits.size());
  MINISGL_CHECK(!out.empty() && out.size() <= logits.size() + 1);
  out[0] = {.token = token, .logprob = finite(logits[static_cast<size_t>(token)])};
  if (out.size() > 1) find_largest(logits, out.subspan(1));
  const double normaliser = log_sum_exp(logits);
  for (TokenLogprob& entry : out) {
    const double logprob = entry.logprob - normaliser;
    entry.logprob = static_cast<float>(std::clamp<double>(logprob, kLeastLogprob, 0.0));
  }
}

}  // namespace minisgl
