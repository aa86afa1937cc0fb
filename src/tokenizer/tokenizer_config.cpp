#include "tokenizer/tokenizer_config.h"

#include <charconv>

#include "tokenizer/vocab.h"
#include "utils/error.h"
#include "utils/json.h"
#include "utils/quote.h"

namespace minisgl {
namespace {

// A token is written as its text or as {"content": its text, …}; null: there is none.
std::string token_content(const Json& token, std::string_view key, std::string_view name) {
  if (token.is_null()) return {};
  if (token.is_string()) return token.get<std::string>();
  if (token.is_object() && token.contains("content") && token["content"].is_string()) {
    return token["content"].get<std::string>();
  }
  throw_error(ErrorKind::kBadFile, "{}: {} is neither a string nor an object with a content", name,
              key);
}

bool flag(const Json& object, const char* key, std::string_view name) {
  if (!object.contains(key) || object[key].is_null()) return false;
  if (!object[key].is_boolean()) {
    throw_error(ErrorKind::kBadFile, "{}: {} is not true or false", name, key);
  }
  return object[key].get<bool>();
}

AddedToken added_token(const std::string& id_text, const Json& token, std::string_view name) {
  AddedToken added;
  const char* end = id_text.data() + id_text.size();
  const auto parsed = std::from_chars(id_text.data(), end, added.id);
  if (parsed.ec != std::errc() || parsed.ptr != end || added.id < 0 || added.id > kMaxTokenId) {
    throw_error(ErrorKind::kBadFile, "{}: added_tokens_decoder has the id {}; expected 0 to {}",
                name, quote(id_text), kMaxTokenId);
  }
  added.content = token_content(token, "a token of added_tokens_decoder", name);
  if (token.is_object()) {
    added.single_word = flag(token, "single_word", name);
    added.lstrip = flag(token, "lstrip", name);
    added.rstrip = flag(token, "rstrip", name);
    added.normalized = flag(token, "normalized", name);
    added.special = flag(token, "special", name);
  }
  return added;
}

// A string, or a list of {"name": …, "template": …} where "default" is the one to use.
void read_chat_template(const Json& value, TokenizerConfig& config, std::string_view name) {
  if (value.is_null()) return;
  if (value.is_string()) {
    config.chat_template = value.get<std::string>();
    return;
  }
  const auto is_named = [](const Json& entry) {
    return entry.is_object() && entry.contains("name") && entry["name"].is_string() &&
           entry.contains("template") && entry["template"].is_string();
  };
  if (!value.is_array()) {
    throw_error(ErrorKind::kBadFile, "{}: chat_template is neither a string nor a list", name);
  }
  for (const Json& entry : value) {
    if (!is_named(entry)) {
      throw_error(ErrorKind::kBadFile, "{}: chat_template has an entry without name or template",
                  name);
    }
    const auto title = entry["name"].get<std::string>();
    auto text = entry["template"].get<std::string>();
    if (title == "default") {
      config.chat_template = std::move(text);
    } else {
      config.named_templates.emplace_back(title, std::move(text));
    }
  }
}

void read_extra_tokens(const Json& tokens, TokenizerConfig& config, std::string_view name) {
  if (!tokens.is_array() && !tokens.is_object()) return;
  for (const Json& token : tokens) {
    std::string text = token_content(token, "an additional special token", name);
    if (!text.empty()) config.extra_special_tokens.push_back(std::move(text));
  }
}

}  // namespace

TokenizerConfig parse_tokenizer_config(std::string_view text, std::string_view name) {
  TokenizerConfig config;
  if (text.empty()) return config;
  const Json json = parse_json(text, name);
  if (!json.is_object()) throw_error(ErrorKind::kBadFile, "{}: expected an object", name);
  const auto token = [&](const char* key) {
    return json.contains(key) ? token_content(json[key], key, name) : std::string();
  };
  const auto optional_flag = [&](const char* key) -> std::optional<bool> {
    if (!json.contains(key) || json[key].is_null()) return std::nullopt;
    return flag(json, key, name);
  };
  config.bos_token = token("bos_token");
  config.eos_token = token("eos_token");
  config.pad_token = token("pad_token");
  config.unk_token = token("unk_token");
  config.add_bos_token = optional_flag("add_bos_token");
  config.add_eos_token = optional_flag("add_eos_token");
  config.add_prefix_space = optional_flag("add_prefix_space").value_or(true);
  config.legacy = optional_flag("legacy").value_or(false);
  if (json.contains("tokenizer_class") && json["tokenizer_class"].is_string()) {
    config.tokenizer_class = json["tokenizer_class"].get<std::string>();
  }
  if (json.contains("added_tokens_decoder") && json["added_tokens_decoder"].is_object()) {
    for (const auto& [id, value] : json["added_tokens_decoder"].items()) {
      config.added_tokens.push_back(added_token(id, value, name));
    }
  }
  for (const char* key : {"additional_special_tokens", "extra_special_tokens"}) {
    if (json.contains(key)) read_extra_tokens(json[key], config, name);
  }
  if (json.contains("chat_template")) read_chat_template(json["chat_template"], config, name);
  return config;
}

}  // namespace minisgl
