#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "utils/error.h"
#include "utils/random.h"

namespace minisgl {

int32_t argmax(std::span<const float> logits) {
  size_t best = 0;
  for (size_t i = 1; i < logits.size(); ++i) {
    if (logits[i] > logits[best] || std::isnan(logits[best])) best = i;
  }
  return static_cast<int32_t>(best);
}

Sampler::Sampler(int64_t vocab_size)
    : rules_(vocab_size),
      probs_(static_cast<size_t>(vocab_size)),
      order_(static_cast<size_t>(vocab_size)) {}

// False: these logits are no distribution (all of them -inf or NaN, or one +inf).
bool Sampler::softmax(std::span<const float> logits, double temperature) {
  const double largest = logits[static_cast<size_t>(argmax(logits))];
  double sum = 0.0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double p = std::exp((logits[i] - largest) / temperature);
    probs_[i] = std::isnan(p) ? 0.0 : p;
    sum += probs_[i];
  }
  for (double& p : probs_) p /= sum;
  return sum > 0.0;
}

// Zeroes what top_k, top_p and min_p drop. A heap gives the most likely first without a full sort.
void Sampler::keep_most_likely(const SamplingParams& params) {
  const double largest = *std::max_element(probs_.begin(), probs_.end());
  if (params.min_p > 0.0) {
    const double least = params.min_p * largest;
    for (double& p : probs_) {
      if (p < least) p = 0.0;
    }
  }
  const auto vocab = static_cast<int64_t>(probs_.size());
  const int64_t k = params.top_k >= 1 ? std::min(params.top_k, vocab) : vocab;
  if (k == vocab && params.top_p >= 1.0) return;

  const auto less_likely = [this](int32_t a, int32_t b) {
    const double pa = probs_[static_cast<size_t>(a)], pb = probs_[static_cast<size_t>(b)];
    return pa != pb ? pa < pb : a > b;
  };
  std::iota(order_.begin(), order_.end(), 0);
  std::make_heap(order_.begin(), order_.end(), less_likely);
  auto end = order_.end();
  double reached = 0.0;
  for (int64_t kept = 0; kept < k && reached < params.top_p; ++kept) {
    std::pop_heap(order_.begin(), end, less_likely);
    --end;
    reached += probs_[static_cast<size_t>(*end)];
  }
  for (auto it = order_.begin(); it != end; ++it) probs_[static_cast<size_t>(*it)] = 0.0;
}

int32_t Sampler::sample(std::span<const float> logits, const SamplingParams& params, uint64_t seed,
                        int64_t position, const TokenHistory& history) {
  MINISGL_CHECK(logits.size() == probs_.size());
  logits = rules_.apply(logits, params, history);
  if (params.is_greedy() || !softmax(logits, params.temperature)) return argmax(logits);
  keep_most_likely(params);

  const double kept = std::accumulate(probs_.begin(), probs_.end(), 0.0);
  const double target = random_uniform(seed, static_cast<uint64_t>(position)) * kept;
  double reached = 0.0;
  int32_t last = 0;
  for (size_t i = 0; i < probs_.size(); ++i) {
    if (probs_[i] == 0.0) continue;
    reached += probs_[i];
    last = static_cast<int32_t>(i);
    if (target < reached) break;
  }
  return last;
}

}  // namespace minisgl
