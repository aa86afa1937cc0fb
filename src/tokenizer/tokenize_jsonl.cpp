#include "tokenizer/tokenize_jsonl.h"

#include <algorithm>
#include <initializer_list>
#include <istream>
#include <limits>
#include <ostream>
#include <string_view>
#include <vector>

#include "utils/error.h"
#include "utils/files.h"

namespace minisgl {
namespace {

// One line of the input, with its number for errors.
class Line {
 public:
  Line(const std::string& text, int64_t number, std::initializer_list<std::string_view> keys)
      : where_(fmt::format("line {}", number)),
        json_(parse_json(text, where_, ErrorKind::kInvalidArgument)) {
    if (!json_.is_object()) refuse("expected an object", json_);
    for (const auto& item : json_.items()) {
      if (std::find(keys.begin(), keys.end(), item.key()) == keys.end()) {
        throw_error(ErrorKind::kInvalidArgument, "{}: unknown key \"{}\"; known are: {}", where_,
                    item.key(), fmt::join(keys, ", "));
      }
    }
  }

  const Json& at(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) {
      throw_error(ErrorKind::kInvalidArgument, "{}: \"{}\" is missing", where_, key);
    }
    return *found;
  }

  const std::string& text(const char* key) const {
    const Json& value = at(key);
    if (!value.is_string()) refuse(fmt::format("\"{}\": expected a string", key), value);
    return value.get_ref<const std::string&>();
  }

  bool flag(const char* key) const {
    if (!json_.contains(key)) return true;
    const Json& value = at(key);
    if (!value.is_boolean()) refuse(fmt::format("\"{}\": expected true or false", key), value);
    return value.get<bool>();
  }

  std::vector<int32_t> ids(const char* key) const {
    const Json& values = at(key);
    if (!values.is_array()) refuse(fmt::format("\"{}\": expected an array", key), values);
    std::vector<int32_t> ids;
    ids.reserve(values.size());
    for (const Json& value : values) {
      const bool fits = value.is_number_unsigned() &&
                        value.get<uint64_t>() <= uint64_t{std::numeric_limits<int32_t>::max()};
      if (!fits) refuse(fmt::format("\"{}\": expected token ids", key), value);
      ids.push_back(value.get<int32_t>());
    }
    return ids;
  }

 private:
  [[noreturn]] void refuse(const std::string& expected, const Json& found) const {
    throw_error(ErrorKind::kInvalidArgument, "{}: {}, found {}", where_, expected,
                found.is_number() ? found.dump() : found.type_name());
  }

  std::string where_;
  Json json_;
};

template <class Answer>
void answer_lines(std::istream& in, std::ostream& out, std::initializer_list<std::string_view> keys,
                  const Answer& answer) {
  int64_t number = 0;
  for (std::string text; std::getline(in, text);) {
    ++number;
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    out << answer(Line(text, number, keys)).dump() << '\n' << std::flush;
    if (!out) throw_error(ErrorKind::kResource, "cannot write the answer to line {}", number);
  }
}

}  // namespace

void encode_jsonl(const Tokenizer& tokenizer, std::istream& in, std::ostream& out) {
  answer_lines(in, out, {"text", "add_special", "parse_special"}, [&](const Line& line) {
    const EncodeOptions options{.add_special = line.flag("add_special"),
                                .parse_special = line.flag("parse_special")};
    return Json{{"ids", tokenizer.encode(line.text("text"), options)}};
  });
}

void decode_jsonl(const Tokenizer& tokenizer, std::istream& in, std::ostream& out) {
  answer_lines(in, out, {"ids"}, [&](const Line& line) {
    return Json{{"text", tokenizer.decode(line.ids("ids"), {.skip_special = false})}};
  });
}

Json special_tokens_of(const Tokenizer& tokenizer) {
  const TokenizerInfo& info = tokenizer.info();
  Json tokens = Json::object();
  const auto add = [&](const char* name, int32_t id) {
    if (id >= 0) tokens[name] = std::string(tokenizer.token_text(id));
  };
  add("bos_token", info.bos_id);
  add("eos_token", info.eos_id);
  add("pad_token", info.pad_id);
  add("unk_token", info.unk_id);
  return tokens;
}

const std::string& own_chat_template(const Tokenizer& tokenizer, bool has_tools) {
  const TokenizerInfo& info = tokenizer.info();
  const auto named = [&](std::string_view name) -> const std::string* {
    for (const auto& entry : info.named_templates) {
      if (entry.first == name) return &entry.second;
    }
    return nullptr;
  };
  if (const std::string* tool_use = named("tool_use"); has_tools && tool_use != nullptr) {
    return *tool_use;
  }
  if (info.chat_template) return *info.chat_template;
  if (const std::string* fallback = named("default")) return *fallback;
  throw_error(ErrorKind::kInvalidArgument,
              "this model has no chat template; give one (--template FILE.jinja)");
}

std::string chat_prompt(const Json& body, const std::optional<std::string>& template_source,
                        const Tokenizer* tokenizer) {
  ChatRequest request = parse_chat_request(body);
  if (tokenizer != nullptr) request.special_tokens = special_tokens_of(*tokenizer);
  if (!template_source && tokenizer == nullptr) {
    throw_error(ErrorKind::kInvalidArgument,
                "a chat needs a model (-m) or a template (--template FILE.jinja)");
  }
  const ChatTemplate chat_template(
      template_source ? *template_source : own_chat_template(*tokenizer, !request.tools.is_null()));
  return render_chat(chat_template, request);
}

std::string chat_prompt_of_file(const std::string& chat_path, const std::string& template_path,
                                const Tokenizer* tokenizer) {
  std::optional<std::string> template_source;
  if (!template_path.empty()) template_source = read_file(template_path);
  return chat_prompt(read_json_file(chat_path), template_source, tokenizer);
}

}  // namespace minisgl
