// minisgl run --jsonl: a file of requests, all in one batch.
#pragma once

#include <string>

#include "minisgl/llm.h"

namespace minisgl {

// Each line of `input` is a request ("-": standard input): "prompt" or "messages", any field of
// SamplingParams, and an "id" that comes back. Writes one JSON line a request to `output` ("-":
// standard output), in the order of the input; what was refused has "error". How far it is goes to
// standard error. Errors: kInvalidArgument naming the line that is no request.
void run_jsonl(LLM& llm, const std::string& input, const std::string& output,
               const SamplingParams& defaults);

}  // namespace minisgl
