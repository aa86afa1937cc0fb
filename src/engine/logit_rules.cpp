#include "engine/logit_rules.h"

#include <algorithm>
#include <limits>

#include "utils/error.h"

namespace minisgl {

LogitRules::LogitRules(int64_t vocab_size)
    : logits_(static_cast<size_t>(vocab_size)), counts_(static_cast<size_t>(vocab_size)) {
  seen_.reserve(static_cast<size_t>(vocab_size));
}

void LogitRules::count(std::span<const int32_t> tokens) {
  for (const int32_t token : tokens) {
    const auto id = static_cast<size_t>(token);
    if (token < 0 || id >= counts_.size()) continue;
    if (counts_[id]++ == 0) seen_.push_back(token);
  }
}

void LogitRules::forget() {
  for (const int32_t token : seen_) counts_[static_cast<size_t>(token)] = 0;
  seen_.clear();
}

void LogitRules::penalise_repetition(double penalty, std::span<const int32_t> tokens) {
  count(tokens);
  for (const int32_t token : seen_) {
    float& logit = logits_[static_cast<size_t>(token)];
    logit = static_cast<float>(logit > 0.0f ? logit / penalty : logit * penalty);
  }
  forget();
}

void LogitRules::penalise_answer(const SamplingParams& params, std::span<const int32_t> answer) {
  count(answer);
  for (const int32_t token : seen_) {
    const auto id = static_cast<size_t>(token);
    logits_[id] -=
        static_cast<float>(params.frequency_penalty * counts_[id] + params.presence_penalty);
  }
  forget();
}

void LogitRules::forbid(std::span<const int32_t> ids) {
  for (const int32_t token : ids) {
    const auto id = static_cast<size_t>(token);
    if (token >= 0 && id < logits_.size()) logits_[id] = -std::numeric_limits<float>::infinity();
  }
}

std::span<const float> LogitRules::apply(std::span<const float> logits,
                                         const SamplingParams& params,
                                         const TokenHistory& history) {
  if (!params.changes_logits()) return logits;
  MINISGL_CHECK(logits.size() == logits_.size());
  std::copy(logits.begin(), logits.end(), logits_.begin());
  for (const LogitBias& bias : params.logit_bias) {
    logits_[static_cast<size_t>(bias.token)] += static_cast<float>(bias.bias);
  }
  if (params.repetition_penalty != 1.0) {
    penalise_repetition(params.repetition_penalty, history.tokens);
  }
  const auto prompt = std::min(history.tokens.size(), static_cast<size_t>(history.prompt_len));
  const std::span<const int32_t> answer = history.tokens.subspan(prompt);
  if (params.frequency_penalty != 0.0 || params.presence_penalty != 0.0) {
    penalise_answer(params, answer);
  }
  if (static_cast<int64_t>(answer.size()) < params.min_tokens) {
    forbid(params.stop_token_ids);
    if (!params.ignore_eos) forbid(history.eos_token_ids);
  }
  return logits_;
}

}  // namespace minisgl
