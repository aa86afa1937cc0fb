// Any bytes are a chat template that renders, or an Error; within the limits, and as a conversation
// that is to be continued too.
#include <cstddef>
#include <cstdint>
#include <string>

#include "tokenizer/chat_template/chat_template.h"
#include "utils/error.h"
#include "utils/json.h"

namespace {

minisgl::ChatRequest conversation() {
  minisgl::ChatRequest request;
  request.messages = minisgl::Json::parse(R"([
      {"role": "system", "content": " Be terse. "},
      {"role": "user", "content": [{"type": "text", "text": "héllo <b> 日本"}, {"type": "image"}]},
      {"role": "assistant", "content": null, "tool_calls": [{"id": "abcdefghi", "type": "function",
       "function": {"name": "f", "arguments": {"x": [1, 2.5, true, null, "it's"], "y": {}}}}]},
      {"role": "tool", "content": "{\"t\": 21}", "tool_call_id": "abcdefghi"},
      {"role": "assistant", "content": "<think>\nso\n</think>\n\nIt is 21 "}])");
  request.tools = minisgl::Json::parse(R"([{"type": "function", "function": {"name": "f",
      "description": "d", "parameters": {"type": "object", "properties": {"x": {"type": "array"}}}}}])");
  request.special_tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  request.extra_variables = {{"n", 7}, {"f", 2.5}, {"big", UINT64_MAX}, {"xs", {3, 1, 2}}};
  return request;
}

minisgl::TemplateLimits small_limits() {
  minisgl::TemplateLimits limits;
  limits.max_steps = 100'000;
  limits.max_output_bytes = size_t{1} << 20;
  limits.max_memory_bytes = size_t{16} << 20;
  return limits;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const std::string source(reinterpret_cast<const char*>(data), size);
    const minisgl::ChatTemplate chat_template(source, small_limits(), [] { return std::tm{}; });
    for (const bool continues : {false, true}) {
      minisgl::ChatRequest request = conversation();
      if (continues) request.continue_final_message = "content";
      try {
        (void)minisgl::render_chat(chat_template, request);
      } catch (const minisgl::Error&) {
      }
    }
  } catch (const minisgl::Error&) {
  }
  return 0;
}
