#include "scheduler/check_sampling.h"

#include <algorithm>
#include <optional>

#include "utils/error.h"

namespace minisgl {
namespace {

template <class T>
void require(bool ok, const char* expected, T found) {
  if (!ok) throw_error(ErrorKind::kInvalidArgument, "{}, found {}", expected, found);
}

// Also false for NaN.
bool within(double value, double low, double high) { return value >= low && value <= high; }

void check_token(const char* name, int32_t id, int64_t vocab_size) {
  if (id >= 0 && id < vocab_size) return;
  throw_error(ErrorKind::kInvalidArgument, "{} must be ids from 0 to {}, found {}", name,
              vocab_size - 1, id);
}

void check_logprobs(const char* name, const std::optional<int64_t>& number, int64_t vocab_size) {
  const int64_t most = std::min(kMaxTopLogprobs, vocab_size);
  if (!number || (*number >= 0 && *number <= most)) return;
  throw_error(ErrorKind::kInvalidArgument, "{} must be from 0 to {}, found {}", name, most,
              *number);
}

}  // namespace

void check_sampling(const SamplingParams& params, int64_t vocab_size) {
  require(params.max_tokens >= 1, "max_tokens must be at least 1", params.max_tokens);
  if (params.min_tokens < 0 || params.min_tokens > params.max_tokens) {
    throw_error(ErrorKind::kInvalidArgument,
                "min_tokens must be from 0 to max_tokens ({}), found {}", params.max_tokens,
                params.min_tokens);
  }
  require(within(params.temperature, 0.0, 100.0), "temperature must be from 0 to 100",
          params.temperature);
  require(params.top_p > 0.0 && params.top_p <= 1.0, "top_p must be above 0 up to 1", params.top_p);
  require(within(params.min_p, 0.0, 1.0), "min_p must be from 0 to 1", params.min_p);
  require(params.repetition_penalty > 0.0 && params.repetition_penalty <= 10.0,
          "repetition_penalty must be above 0 up to 10", params.repetition_penalty);
  require(within(params.frequency_penalty, -2.0, 2.0), "frequency_penalty must be from -2 to 2",
          params.frequency_penalty);
  require(within(params.presence_penalty, -2.0, 2.0), "presence_penalty must be from -2 to 2",
          params.presence_penalty);
  for (const LogitBias& bias : params.logit_bias) {
    check_token("the tokens of logit_bias", bias.token, vocab_size);
    require(within(bias.bias, -100.0, 100.0), "the biases of logit_bias must be from -100 to 100",
            bias.bias);
  }
  for (const int32_t id : params.stop_token_ids) check_token("stop_token_ids", id, vocab_size);
  check_logprobs("logprobs", params.logprobs, vocab_size);
  check_logprobs("prompt_logprobs", params.prompt_logprobs, vocab_size);
}

}  // namespace minisgl
