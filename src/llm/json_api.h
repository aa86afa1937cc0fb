// Options, requests and outputs as JSON: what the C API and files of prompts speak.
#pragma once

#include "minisgl/llm.h"
#include "utils/json.h"

namespace minisgl {

// An object whose keys are the fields of LLMOptions. Errors: kInvalidArgument naming an unknown key
// or a value of the wrong type.
LLMOptions options_from_json(const Json& object);

// One request: "prompt" (text or token ids) or "messages" (role and content), and any field of
// SamplingParams; fields that are not there keep `defaults`. "id" is any JSON and comes back.
struct JsonRequest {
  Json id = nullptr;
  std::optional<Prompt> prompt{};
  std::vector<ChatMessage> messages{};  // when there is no prompt
  SamplingParams sampling{};
};
JsonRequest request_from_json(const Json& object, const SamplingParams& defaults);

// The fields of Output that say something.
Json output_to_json(const Output& output);

}  // namespace minisgl
