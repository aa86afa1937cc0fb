// Jinja's tests: what stands behind `is`.
#include <fmt/format.h>

#include <algorithm>

#include "tokenizer/chat_template/builtins.h"
#include "tokenizer/chat_template/operators.h"
#include "tokenizer/chat_template/python_text.h"

namespace minisgl::jinja {
namespace {

void no_arguments(Arguments& arguments) { bind("test", arguments, {}); }

template <Type kType>
bool is_type(Interpreter&, const Value& input, Arguments& arguments) {
  no_arguments(arguments);
  return input.is(kType);
}

bool is_defined(Interpreter&, const Value& input, Arguments& arguments) {
  no_arguments(arguments);
  return !input.is(Type::kUndefined);
}

bool is_true(Interpreter&, const Value& input, Arguments&) {
  return input.is(Type::kBool) && input.as_bool();
}
bool is_false(Interpreter&, const Value& input, Arguments&) {
  return input.is(Type::kBool) && !input.as_bool();
}
bool is_number(Interpreter&, const Value& input, Arguments&) { return input.is_number(); }
bool is_lower(Interpreter&, const Value& input, Arguments&) {
  return has_class(to_text(input), TextClass::kLower);
}
bool is_upper(Interpreter&, const Value& input, Arguments&) {
  return has_class(to_text(input), TextClass::kUpper);
}
bool is_escaped(Interpreter&, const Value& input, Arguments&) { return input.is_markup(); }
bool is_iterable_value(Interpreter&, const Value& input, Arguments&) { return is_iterable(input); }

bool is_sequence(Interpreter&, const Value& input, Arguments&) {
  if (input.is(Type::kList)) return input.list().kind <= ListKind::kRange;
  return input.is(Type::kString) || input.is(Type::kDict) || input.is(Type::kUndefined);
}

bool is_callable(Interpreter&, const Value& input, Arguments&) {
  switch (input.type()) {
    case Type::kMacro:
    case Type::kNative:
    case Type::kMethod:
    case Type::kLoop:
    case Type::kUndefined:
      return true;
    default:
      return false;
  }
}

Value remainder(Interpreter& interpreter, const Value& input, const Value& divisor) {
  return binary(interpreter.heap(), BinaryOp::kMod, input, divisor);
}

bool is_odd(Interpreter& interpreter, const Value& input, Arguments&) {
  return equals(remainder(interpreter, input, Value(2)), Value(1));
}
bool is_even(Interpreter& interpreter, const Value& input, Arguments&) {
  return equals(remainder(interpreter, input, Value(2)), Value(0));
}
bool is_divisible_by(Interpreter& interpreter, const Value& input, Arguments& arguments) {
  const auto values = bind("divisibleby", arguments, {{"num"}});
  return equals(remainder(interpreter, input, values[0]), Value(0));
}

bool is_same_as(Interpreter&, const Value& input, Arguments& arguments) {
  return same(input, bind("sameas", arguments, {{"other"}})[0]);
}
bool is_in(Interpreter& interpreter, const Value& input, Arguments& arguments) {
  return contains(interpreter.heap(), bind("in", arguments, {{"seq"}})[0], input);
}

bool is_equal(Interpreter&, const Value& input, Arguments& arguments) {
  return equals(input, bind("eq", arguments, {{"other"}})[0]);
}
bool is_unequal(Interpreter&, const Value& input, Arguments& arguments) {
  return !equals(input, bind("ne", arguments, {{"other"}})[0]);
}
bool is_less(Interpreter&, const Value& input, Arguments& arguments) {
  return less_than(input, bind("lt", arguments, {{"other"}})[0], "<");
}
bool is_greater(Interpreter&, const Value& input, Arguments& arguments) {
  return less_than(bind("gt", arguments, {{"other"}})[0], input, ">");
}
bool is_less_or_equal(Interpreter&, const Value& input, Arguments& arguments) {
  const Value other = bind("le", arguments, {{"other"}})[0];
  return less_than(input, other, "<=") || equals(input, other);
}
bool is_greater_or_equal(Interpreter&, const Value& input, Arguments& arguments) {
  const Value other = bind("ge", arguments, {{"other"}})[0];
  return less_than(other, input, ">=") || equals(input, other);
}

bool is_filter(Interpreter&, const Value& input, Arguments&) {
  return input.is(Type::kString) && find_filter(input.str()) != nullptr;
}
bool is_test(Interpreter&, const Value& input, Arguments&) {
  return input.is(Type::kString) && find_test(input.str()) != nullptr;
}

constexpr struct {
  std::string_view name;
  Test test;
} kTests[] = {
    {"defined", is_defined},
    {"undefined", is_type<Type::kUndefined>},
    {"none", is_type<Type::kNone>},
    {"boolean", is_type<Type::kBool>},
    {"true", is_true},
    {"false", is_false},
    {"integer", is_type<Type::kInt>},
    {"float", is_type<Type::kFloat>},
    {"number", is_number},
    {"string", is_type<Type::kString>},
    {"mapping", is_type<Type::kDict>},
    {"sequence", is_sequence},
    {"iterable", is_iterable_value},
    {"callable", is_callable},
    {"lower", is_lower},
    {"upper", is_upper},
    {"escaped", is_escaped},
    {"odd", is_odd},
    {"even", is_even},
    {"divisibleby", is_divisible_by},
    {"sameas", is_same_as},
    {"in", is_in},
    {"eq", is_equal},
    {"equalto", is_equal},
    {"==", is_equal},
    {"ne", is_unequal},
    {"!=", is_unequal},
    {"lt", is_less},
    {"lessthan", is_less},
    {"<", is_less},
    {"gt", is_greater},
    {"greaterthan", is_greater},
    {">", is_greater},
    {"le", is_less_or_equal},
    {"<=", is_less_or_equal},
    {"ge", is_greater_or_equal},
    {">=", is_greater_or_equal},
    {"filter", is_filter},
    {"test", is_test},
};

}  // namespace

Test find_test(std::string_view name) {
  for (const auto& entry : kTests) {
    if (entry.name == name) return entry.test;
  }
  return nullptr;
}

}  // namespace minisgl::jinja
