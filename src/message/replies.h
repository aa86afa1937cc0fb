// What comes back: a reply a token, and exactly one of them `finished` for every request.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "minisgl/error.h"

namespace minisgl {

enum class FinishReason : uint8_t {
  kNone,     // not finished
  kStop,     // an end-of-text or stop token
  kLength,   // max_tokens, or the context is full
  kAbort,    // the client asked
  kTimeout,  // its deadline passed
  kError,    // refused or failed; `error` says why
};

constexpr std::string_view finish_reason_name(FinishReason reason) {
  constexpr std::string_view kNames[] = {"", "stop", "length", "abort", "timeout", "error"};
  return kNames[static_cast<size_t>(reason)];
}

struct Reply {
  int64_t uid = 0;
  int32_t token = -1;         // -1: none (a terminal reply without a token)
  bool token_is_text = true;  // false: the token ended the text and is not part of it
  bool finished = false;
  FinishReason reason = FinishReason::kNone;
  ErrorKind error_kind = ErrorKind::kInternal;
  std::string error{};
  // What the request has cost up to this reply.
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // of the prompt, found in the prefix cache at admission
  int64_t completion_tokens = 0;
};

}  // namespace minisgl
