#include "llm/answer.h"

#include <utility>

namespace minisgl {

void Answer::end(std::string_view reason, EndRule rule) {
  if (finished_) return;
  finished_ = true;
  output_.finish_reason = reason;
  output_.finish_rule = end_rule_name(rule);
}

void Answer::add_logprobs(Reply& reply) {
  if (!reply.prompt_logprobs.empty()) output_.prompt_logprobs = std::move(reply.prompt_logprobs);
  if (!reply.logprobs) return;
  output_.cumulative_logprob += reply.logprobs->token.logprob;
  output_.logprobs.push_back(std::move(*reply.logprobs));
}

std::string Answer::push(Reply reply) {
  std::string text;
  if (reply.token >= 0) {
    output_.token_ids.push_back(reply.token);
    add_logprobs(reply);
    if (reply.token_is_text) text = detokenizer_.push(reply.token);
  }
  if (detokenizer_.stopped()) {
    end("stop", EndRule::kStopString);
  } else if (reply.finished) {
    if (reply.reason == FinishReason::kError) error_.emplace(reply.error_kind, reply.error);
    text += detokenizer_.finish();
    end(finish_reason_name(reply.reason), reply.rule);
    output_.prefix_agreeing_tokens = reply.prefix_agreeing_tokens;
    output_.prefix_stop = reply.prefix_stop;
  }
  if (counts_prompt_) {
    output_.prompt_tokens = reply.prompt_tokens;
    output_.cached_tokens = reply.cached_tokens;
  }
  output_.text += text;
  return text;
}

Output Answer::take() {
  if (error_) throw *error_;
  return std::move(output_);
}

}  // namespace minisgl
