// What the scheduler is asked for. It never sees text: prompts arrive as token ids, and the ids
// that end a text come along.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "core/sampling.h"

namespace minisgl {

using Clock = std::chrono::steady_clock;

struct GenerateRequest {
  int64_t uid = 0;  // unique among live requests
  std::vector<int32_t> input_ids{};
  SamplingParams sampling_params{};
  std::vector<int32_t> eos_token_ids{};
  int priority = 0;         // higher goes first; waiting raises it (aging)
  uint64_t cache_salt = 0;  // requests of different salts share no cached prefix
  std::optional<Clock::time_point> deadline = std::nullopt;  // ended with kTimeout when it passes
};

// Ends a request at any moment; one that is unknown or has ended is ignored.
struct AbortRequest {
  int64_t uid = 0;
};

using Request = std::variant<GenerateRequest, AbortRequest>;

}  // namespace minisgl
