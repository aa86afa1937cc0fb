// Python's three ways to format: "…" % args, "…".format(args) and format(value, spec).
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "tokenizer/chat_template/value.h"

namespace minisgl::jinja {

// text % arguments, where a tuple or a dict gives several.
std::string percent_format(Heap& heap, std::string_view text, const Value& arguments);

// How "{0.name[key]}" finds the parts of a field.
struct FieldAccess {
  std::function<Value(const Value&, const std::string&)> attribute;
  std::function<Value(const Value&, const Value&)> item;
};
std::string format_method(Heap& heap, std::string_view text, const Arguments& arguments,
                          const FieldAccess& access);

// round(value, digits): ties go to the even digit of the exact value.
double round_to(double value, int64_t digits);

}  // namespace minisgl::jinja
