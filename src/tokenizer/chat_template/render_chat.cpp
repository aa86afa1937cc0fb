// A chat request into a prompt: which variables a template sees, and how a last message is left
// open for the model to go on with.
#include <string_view>

#include "tokenizer/chat_template/chat_template.h"
#include "tokenizer/chat_template/python_text.h"
#include "utils/error.h"

namespace minisgl {
namespace {

// Stands behind the last message while the template runs. A template that trims its messages takes
// the space, which tells the two cases apart.
constexpr std::string_view kContinueTag = "CONTINUE_FINAL_MESSAGE_TAG ";
constexpr std::string_view kContinueMark = kContinueTag.substr(0, kContinueTag.size() - 1);

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw_error(ErrorKind::kInvalidArgument, format, std::forward<Args>(args)...);
}

void check_messages(const Json& messages) {
  if (!messages.is_array()) refuse("messages: expected an array, found {}", messages.type_name());
  if (messages.empty()) refuse("messages: the conversation is empty; send at least one message");
  for (size_t i = 0; i < messages.size(); ++i) {
    if (!messages[i].is_object()) {
      refuse("messages[{}]: expected an object, found {}", i, messages[i].type_name());
    }
  }
}

void check_array_or_null(const char* name, const Json& value) {
  if (!value.is_null() && !value.is_array()) {
    refuse("{}: expected an array, found {}", name, value.type_name());
  }
}

// Tags the text that is to be continued in place; returns it untagged.
std::string tag_final_message(Json& message, const std::string& field) {
  const auto found = message.find(field);
  if (found == message.end() || found->is_null()) {
    refuse("continue_final_message is set but the final message has no \"{}\" to continue", field);
  }
  Json* text = &*found;
  if (found->is_array()) {
    text = nullptr;
    for (auto part = found->rbegin(); part != found->rend() && text == nullptr; ++part) {
      if (part->is_object() && part->contains("text")) text = &(*part)["text"];
    }
    if (text == nullptr) {
      refuse("continue_final_message is set but the final message holds no text to continue");
    }
  }
  if (!text->is_string()) {
    refuse("continue_final_message: the final message's \"{}\" is not text", field);
  }
  std::string final_text = text->get<std::string>();
  *text = final_text + std::string(kContinueTag);
  return final_text;
}

std::string cut_at_tag(std::string rendered, const std::string& final_text) {
  const auto trimmed = jinja::strip(final_text, jinja::Side::kBoth, std::nullopt);
  const size_t tag = rendered.rfind(kContinueMark);
  if (tag == std::string::npos || rendered.find(trimmed) == std::string::npos) {
    refuse(
        "continue_final_message is set but the final message does not appear in the chat after "
        "applying the chat template; the template may delete parts of it. Final message: {}",
        trimmed);
  }
  const bool keeps_spaces = rendered.compare(tag, kContinueTag.size(), kContinueTag) == 0;
  rendered.resize(tag);
  if (keeps_spaces) return rendered;
  return std::string(jinja::strip(rendered, jinja::Side::kRight, std::nullopt));
}

Json template_variables(const ChatRequest& request, Json messages) {
  Json variables = request.special_tokens.is_object() ? request.special_tokens : Json::object();
  for (const auto& [name, value] : request.extra_variables.items()) variables[name] = value;
  for (const char* name : {"messages", "tools", "documents", "add_generation_prompt"}) {
    if (request.extra_variables.contains(name)) {
      refuse("chat_template_kwargs: '{}' has its own field in the request", name);
    }
  }
  variables["messages"] = std::move(messages);
  variables["tools"] = request.tools;
  variables["documents"] = request.documents;
  variables["add_generation_prompt"] = request.add_generation_prompt;
  return variables;
}

bool bool_field(const Json& body, const char* name) {
  const auto found = body.find(name);
  if (found == body.end() || found->is_null()) return false;
  if (!found->is_boolean())
    refuse("{}: expected true or false, found {}", name, found->type_name());
  return found->get<bool>();
}

}  // namespace

std::string render_chat(const ChatTemplate& chat_template, const ChatRequest& request) {
  check_messages(request.messages);
  check_array_or_null("tools", request.tools);
  check_array_or_null("documents", request.documents);
  if (!request.extra_variables.is_object()) refuse("chat_template_kwargs: expected an object");
  if (!request.continue_final_message) {
    return chat_template.render(template_variables(request, request.messages));
  }
  const std::string& field = *request.continue_final_message;
  if (request.add_generation_prompt) {
    refuse(
        "continue_final_message and add_generation_prompt are not compatible: one continues the "
        "final message, the other starts a new one");
  }
  Json messages = request.messages;
  const std::string final_text = tag_final_message(messages.back(), field);
  if (chat_template.source().find(field) == std::string::npos) {
    refuse("continue_final_message: the chat template does not use the field \"{}\"", field);
  }
  return cut_at_tag(chat_template.render(template_variables(request, std::move(messages))),
                    final_text);
}

ChatRequest parse_chat_request(const Json& body) {
  if (!body.is_object()) refuse("chat request: expected an object, found {}", body.type_name());
  ChatRequest request;
  if (!body.contains("messages")) refuse("chat request: 'messages' is missing");
  request.messages = body.at("messages");
  if (body.contains("tools")) request.tools = body.at("tools");
  if (body.contains("documents")) request.documents = body.at("documents");
  request.add_generation_prompt = bool_field(body, "add_generation_prompt");
  if (const auto found = body.find("continue_final_message"); found != body.end()) {
    if (found->is_string()) {
      if (!found->get_ref<const std::string&>().empty())
        request.continue_final_message = found->get<std::string>();
    } else if (bool_field(body, "continue_final_message")) {
      request.continue_final_message = "content";
    }
  }
  if (const auto found = body.find("chat_template_kwargs");
      found != body.end() && !found->is_null()) {
    if (!found->is_object())
      refuse("chat_template_kwargs: expected an object, found {}", found->type_name());
    request.extra_variables = *found;
  }
  return request;
}

}  // namespace minisgl
