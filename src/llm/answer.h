// One request's replies gathered into its output.
#pragma once

#include <optional>
#include <string>

#include "message/replies.h"
#include "minisgl/llm.h"
#include "tokenizer/detokenizer.h"

namespace minisgl {

// Ends with the finished reply, or before it when a stop string is complete or the caller cancels.
class Answer {
 public:
  // Errors: kInvalidArgument for unusable stop strings.
  // counts_prompt: false for the second and later samples of a prompt.
  Answer(const Tokenizer& tokenizer, const SamplingParams& params, bool counts_prompt)
      : counts_prompt_(counts_prompt),
        detokenizer_(tokenizer, {.stop = params.stop, .include_stop = params.include_stop}) {}

  // The text that this reply makes certain. Not to be called once finished().
  std::string push(Reply reply);
  void cancel() { end("abort", EndRule::kAborted); }
  bool finished() const { return finished_; }
  // Errors: why the request was refused or failed.
  Output take();

 private:
  void end(std::string_view reason, EndRule rule);
  void add_logprobs(Reply& reply);

  bool counts_prompt_;
  Detokenizer detokenizer_;
  Output output_;
  std::optional<Error> error_;
  bool finished_ = false;
};

}  // namespace minisgl
