// Chat templates: Jinja as model repositories ship it, run with limits.
#pragma once

#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tokenizer/chat_template/limits.h"
#include "tokenizer/chat_template/raised.h"
#include "utils/json.h"

namespace minisgl {

namespace jinja {
struct Ast;
}

// A template, parsed once. Immutable: all methods may be called from any thread.
//
// It understands Jinja 2 as Hugging Face transformers sets it up: trim_blocks and lstrip_blocks,
// break and continue, generation blocks, tojson without HTML escapes, raise_exception and
// strftime_now. Values behave as in Python (truth, printing, slices, methods). There is no access
// to anything outside: no files, no other templates, no environment.
class ChatTemplate {
 public:
  // Broken-down local time for strftime_now.
  using Clock = std::function<std::tm()>;

  // An empty clock is the system's. Errors: kInvalidArgument with the line (not a template, or too
  // large), kUnsupported for tags that would load other templates.
  explicit ChatTemplate(std::string source, TemplateLimits limits = {}, Clock clock = {});

  // `variables`: an object; its keys are the template's variables.
  // Errors: TemplateRaised where the template refuses; kInvalidArgument with the line where it
  // fails or meets a limit; kUnsupported for an unknown filter or test.
  std::string render(const Json& variables) const;

  const std::string& source() const { return source_; }

 private:
  std::string source_;
  TemplateLimits limits_;
  Clock clock_;
  std::shared_ptr<const jinja::Ast> ast_;  // shared by copies, never changed
};

// What a chat request says about its prompt.
struct ChatRequest {
  Json messages;             // an array of objects
  Json tools = nullptr;      // null or an array
  Json documents = nullptr;  // null or an array
  bool add_generation_prompt = false;
  // The message's field that the model goes on with ("content" for most), or nothing.
  std::optional<std::string> continue_final_message = std::nullopt;
  Json extra_variables = Json::object();  // chat_template_kwargs: further variables, they win
  // Special tokens by name ("bos_token", "eos_token", …) -> text.
  Json special_tokens = Json::object();
};

// The prompt, as transformers' apply_chat_template renders it. With continue_final_message the text
// ends where the last message ends. Errors: those of render, and kInvalidArgument for messages that
// are no conversation or that the template does not let continue.
std::string render_chat(const ChatTemplate& chat_template, const ChatRequest& request);

// Reads the body of a chat request: messages, tools, documents, add_generation_prompt,
// continue_final_message (true or the name of a field), chat_template_kwargs. Other keys belong to
// other rooms. Errors: kInvalidArgument naming the field.
ChatRequest parse_chat_request(const Json& body);

}  // namespace minisgl
