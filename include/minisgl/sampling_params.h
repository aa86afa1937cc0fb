// How a request's tokens are chosen and when it ends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace minisgl {

// The order of operations: logits / temperature -> softmax -> top_k -> top_p -> min_p -> draw.
struct SamplingParams {
  double temperature = 0.0;  // >= 0; 0: always the most likely token (lowest id of equals)
  int64_t top_k = -1;        // keep the k most likely; < 1: all
  double top_p = 1.0;        // (0, 1]: keep the shortest prefix whose probabilities reach p
  double min_p = 0.0;        // [0, 1]: drop tokens below min_p * the most likely one's probability
  std::optional<uint64_t> seed{};  // the same seed gives the same draws whatever shares the batch
  int64_t max_tokens = 1024;       // >= 1; cut to what fits the context
  bool ignore_eos = false;         // go on past the model's end-of-text tokens
  std::vector<int32_t> stop_token_ids{};
  std::vector<std::string> stop{};  // texts that end the answer, found across token borders …
  bool include_stop = false;        // … and not part of it unless asked

  bool is_greedy() const { return temperature <= 0.0 || top_k == 1; }
};

}  // namespace minisgl
