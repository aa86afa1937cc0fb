// How a request's tokens are chosen and when it ends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace minisgl {

inline constexpr int64_t kMaxTopLogprobs = 20;
inline constexpr int64_t kMaxSamples = 128;

// Added to the token's logit at every step; several of one token add up.
struct LogitBias {
  int32_t token = 0;
  double bias = 0.0;  // [-100, 100]
};

// The order of operations: logits -> logit_bias -> repetition_penalty -> frequency_penalty and
// presence_penalty -> min_tokens -> / temperature -> softmax -> top_k -> top_p -> min_p -> draw.
struct SamplingParams {
  double temperature = 0.0;  // [0, 100]; 0: always the most likely token (lowest id of equals)
  int64_t top_k = -1;        // keep the k most likely; < 1: all
  double top_p = 1.0;        // (0, 1]: keep the shortest prefix whose probabilities reach p
  double min_p = 0.0;        // [0, 1]: drop tokens below min_p * the most likely one's probability
  // (0, 10]: of a token of the prompt or the answer, divides a logit above 0 and multiplies others.
  double repetition_penalty = 1.0;
  double frequency_penalty = 0.0;  // [-2, 2]: subtracted for each time the answer has the token
  double presence_penalty = 0.0;   // [-2, 2]: subtracted if the answer has it at all
  std::vector<LogitBias> logit_bias{};
  std::optional<uint64_t> seed{};  // the same seed gives the same draws whatever shares the batch
  int64_t n = 1;                   // [1, kMaxSamples]: answers to each prompt, computed once
  int64_t max_tokens = 1024;       // >= 1; cut to what fits the context
  int64_t min_tokens = 0;          // [0, max_tokens]: before, no token id ends the answer
  bool ignore_eos = false;         // go on past the model's end-of-text tokens
  std::vector<int32_t> stop_token_ids{};
  std::vector<std::string> stop{};  // texts that end the answer, found across token borders …
  bool include_stop = false;        // … and not part of it unless asked
  // [0, kMaxTopLogprobs]: report the log-probability of each token of the answer, and of so many
  // most likely ones. None is reported when empty.
  std::optional<int64_t> logprobs{};
  // The same of each token of the prompt but the first. Such a prompt is computed in full: nothing
  // of it is taken from the prefix cache.
  std::optional<int64_t> prompt_logprobs{};

  bool is_greedy() const { return temperature <= 0.0 || top_k == 1; }
  // Whether logits may have to be changed before a token is chosen.
  bool changes_logits() const {
    return repetition_penalty != 1.0 || frequency_penalty != 0.0 || presence_penalty != 0.0 ||
           min_tokens > 0 || !logit_bias.empty();
  }
};

}  // namespace minisgl
