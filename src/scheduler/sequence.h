// One request inside the scheduler.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/req.h"
#include "kvcache/prefix_cache.h"
#include "message/replies.h"
#include "message/requests.h"
#include "scheduler/wait_reason.h"

namespace minisgl {

enum class SequenceState : uint8_t {
  kWaiting,   // in the queue; holds nothing
  kPrefill,   // holds a row and pages; part of its prompt is still to be computed
  kDecode,    // one token a step
  kFinished,  // has had its terminal reply; goes when no launched step mentions it
};

// Pages of its row, by position:
//   [0, prefix.length())              in the prefix cache, locked by this request
//   [prefix.length(), allocated_len)  its own
struct Sequence {
  Req req;
  SequenceState state = SequenceState::kWaiting;
  int priority = 0;
  uint64_t cache_salt = 0;
  std::optional<Clock::time_point> deadline;

  uint64_t arrival = 0;    // order of submission
  uint64_t queued_at = 0;  // step at which it began to wait, for aging
  uint64_t admission = 0;  // order of admission: the largest is the youngest
  PrefixLock prefix;
  int64_t allocated_len = 0;  // positions whose locations are in its row, whole pages
  int64_t computed_len = 0;   // positions whose K and V were computed by finished steps
  int64_t generated = 0;      // tokens that the host has received
  int64_t cached_tokens = 0;  // of the prompt, found in the cache when it was first admitted
  bool counted_cached = false;
  std::optional<PrefixDivergence> divergence{};  // where the prefix stopped matching then
  WaitReason wait_reason = WaitReason::kArrived;
  // Of the prompt from its second token on, where asked for; goes out with the first token.
  std::vector<PositionLogprobs> prompt_logprobs;
  int in_flight = 0;        // launched steps that mention it
  bool retracting = false;  // gives its pages back when none does

  bool holds_pages() const {
    return state == SequenceState::kPrefill || state == SequenceState::kDecode;
  }
  // How many of its tokens may be taken from the cache: never the last, and none whose
  // log-probabilities are still to be computed.
  int64_t matchable_len() const {
    if (req.scores_prompt()) return req.scored_len;
    return static_cast<int64_t>(req.input_ids.size()) - 1;
  }
  // May be batched for another token or chunk.
  bool wants_step() const { return holds_pages() && !retracting && req.can_decode(); }
};

}  // namespace minisgl
