// What comes back: a reply a token, and exactly one of them `finished` for every request.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "minisgl/error.h"
#include "minisgl/logprobs.h"

namespace minisgl {

enum class FinishReason : uint8_t {
  kNone,     // not finished
  kStop,     // an end-of-text or stop token
  kLength,   // max_tokens, or the context is full
  kAbort,    // the client asked
  kTimeout,  // its deadline passed
  kError,    // refused or failed; `error` says why
};

inline constexpr size_t kNumFinishReasons = 6;
constexpr std::string_view finish_reason_name(FinishReason reason) {
  constexpr std::string_view kNames[] = {"", "stop", "length", "abort", "timeout", "error"};
  return kNames[static_cast<size_t>(reason)];
}

// Which rule ended it, one level finer.
enum class EndRule : uint8_t {
  kNone,         // not finished
  kEndOfText,    // one of the model's end-of-text tokens
  kStopToken,    // one of stop_token_ids
  kStopString,   // one of the stop texts (decided where text is known, not by the scheduler)
  kMaxTokens,    // max_tokens
  kContextFull,  // no more fits the context or the KV pool
  kAborted,
  kDeadline,
  kRefused,  // could never be served as asked
  kFailed,   // its step threw
};

constexpr std::string_view end_rule_name(EndRule rule) {
  constexpr std::string_view kNames[] = {"",           "end_of_text",  "stop_token", "stop_string",
                                         "max_tokens", "context_full", "aborted",    "deadline",
                                         "refused",    "failed"};
  return kNames[static_cast<size_t>(rule)];
}

struct Reply {
  int64_t uid = 0;
  int32_t token = -1;         // -1: none (a terminal reply without a token)
  bool token_is_text = true;  // false: the token ended the text and is not part of it
  bool finished = false;
  FinishReason reason = FinishReason::kNone;
  EndRule rule = EndRule::kNone;
  ErrorKind error_kind = ErrorKind::kInternal;
  std::string error{};
  // What the request has cost up to this reply.
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // of the prompt, found in the prefix cache at admission
  int64_t completion_tokens = 0;
  // In the finished reply, of a request that was admitted: why cached_tokens is not more. So many
  // tokens of the prompt agreed with the cache, then came the stop: "complete", "page border",
  // "differs", "not cached", "cache off",
  // or "prompt logprobs", which need every position computed.
  int64_t prefix_agreeing_tokens = 0;
  std::string_view prefix_stop{};
  std::optional<PositionLogprobs> logprobs{};  // of the token, where asked for
  // Of the prompt from its second token on, where asked for; with the first token.
  std::vector<PositionLogprobs> prompt_logprobs{};
};

}  // namespace minisgl
