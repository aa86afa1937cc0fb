// Chooses the next token from a row of logits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/sampling.h"
#include "engine/logit_rules.h"

namespace minisgl {

// What logit_rules.h leaves of the logits; softmax(logits / temperature), then of that: the top_k
// most likely (lowest id first of equals), the shortest most-likely-first prefix whose
// probabilities reach top_p, and whatever is at least min_p times the most likely; the kept ones
// renormalised, and one drawn by inverse transform in order of id with the uniform number that
// (seed, position) gives. So the same request draws the same tokens whatever shares its batch. Owns
// its scratch; one thread.
class Sampler {
 public:
  explicit Sampler(int64_t vocab_size);

  // logits: [V]. history: what penalties and min_tokens look at.
  int32_t sample(std::span<const float> logits, const SamplingParams& params, uint64_t seed,
                 int64_t position, const TokenHistory& history = {});

 private:
  bool softmax(std::span<const float> logits, double temperature);
  void keep_most_likely(const SamplingParams& params);

  LogitRules rules_;
  std::vector<double> probs_;
  std::vector<int32_t> order_;
};

// The lowest id among the largest logits. NaN counts as smallest.
int32_t argmax(std::span<const float> logits);

}  // namespace minisgl
