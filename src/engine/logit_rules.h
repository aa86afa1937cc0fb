// What a request's parameters do to its logits before a token is chosen.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/sampling.h"

namespace minisgl {

// What a request has said so far. The token pool has it where sampling happens, one token further
// than the host under overlap.
struct TokenHistory {
  std::span<const int32_t> tokens{};  // prompt, then answer
  int64_t prompt_len = 0;
  std::span<const int32_t> eos_token_ids{};
};

// Bias, penalties and min_tokens. Counts are taken from the history each time: linear in its
// length, which is little beside the vocabulary, and nothing can go stale when a row of the token
// pool changes hands or a request resumes. Owns its scratch; never allocates after the constructor.
// One thread.
class LogitRules {
 public:
  explicit LogitRules(int64_t vocab_size);

  // logits: [V]. `logits` itself when the parameters leave it as it is; else a changed copy, good
  // until the next call. The ids of `params` are of the vocabulary, those of the history may not
  // be.
  std::span<const float> apply(std::span<const float> logits, const SamplingParams& params,
                               const TokenHistory& history);

 private:
  void count(std::span<const int32_t> tokens);
  void forget();
  void penalise_repetition(double penalty, std::span<const int32_t> tokens);
  void penalise_answer(const SamplingParams& params, std::span<const int32_t> answer);
  void forbid(std::span<const int32_t> ids);

  std::vector<float> logits_;    // [V]
  std::vector<int32_t> counts_;  // [V], all 0 between calls
  std::vector<int32_t> seen_;    // ids whose count is not 0; room for V
};

}  // namespace minisgl
