// What Jinja and Python bring along: filters, tests, methods and global functions, each family in
// its own source with one table.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/chat_template/interpreter.h"
#include "tokenizer/chat_template/value.h"

namespace minisgl::jinja {

using Filter = Value (*)(Interpreter&, const Value& input, Arguments&);
using Test = bool (*)(Interpreter&, const Value& input, Arguments&);

// Null for an unknown name.
Filter find_filter(std::string_view name);
Test find_test(std::string_view name);

// Whether object.name is a method, and its call.
bool has_method(const Value& object, std::string_view name);
Value call_method(Interpreter& interpreter, MethodObject& method, Arguments& arguments);

// range, dict, namespace, cycler, joiner, raise_exception, strftime_now
DictObject* make_globals(Heap& heap);

// json.dumps as chat templates have it.
struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::optional<std::string> indent;  // one level of it; nothing: all on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};
std::string to_json(Heap& heap, const Value& value, const JsonStyle& style);

// One parameter of a built-in; without a fallback it must be given.
struct Parameter {
  const char* name;
  std::optional<Value> fallback = std::nullopt;
};
// The arguments in the order of the parameters. Fails on missing, surplus and unknown ones.
std::vector<Value> bind(std::string_view function, Arguments& arguments,
                        std::initializer_list<Parameter> parameters);
// The text of an argument that must be a string.
const std::string& text_of(std::string_view function, const Value& value);
// dict(…) and namespace(…): a mapping or pairs, then keywords.
DictObject* make_dict(Interpreter& interpreter, std::string_view function, Arguments& arguments);

}  // namespace minisgl::jinja
