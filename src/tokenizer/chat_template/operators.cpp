#include "tokenizer/chat_template/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tokenizer/chat_template/python_format.h"
#include "tokenizer/chat_template/python_text.h"

namespace minisgl::jinja {
namespace {

constexpr Integer kMaxInteger = (Integer{1} << 126) - 1;

const char* symbol(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd:
      return "+";
    case BinaryOp::kSub:
      return "-";
    case BinaryOp::kMul:
      return "*";
    case BinaryOp::kDiv:
      return "/";
    case BinaryOp::kFloorDiv:
      return "//";
    case BinaryOp::kMod:
      return "%";
    case BinaryOp::kPow:
      return "** or pow()";
  }
  return "?";
}

Integer magnitude(Integer value) { return value < 0 ? -value : value; }

Integer floor_mod(Integer a, Integer b) { return a - floor_div(a, b) * b; }

double float_mod(double a, double b) {
  double mod = std::fmod(a, b);
  if (mod != 0) {
    if ((b < 0) != (mod < 0)) mod += b;
  } else {
    mod = std::copysign(0.0, b);
  }
  return mod;
}

double float_floor_div(double a, double b) {
  const double mod = float_mod(a, b);
  const double quotient = (a - mod) / b;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1 : floored;
}

Value integer_binary(BinaryOp op, Integer a, Integer b) {
  switch (op) {
    case BinaryOp::kAdd:
      return checked(a + b);
    case BinaryOp::kSub:
      return checked(a - b);
    case BinaryOp::kMul:
      return checked_product(a, b);
    case BinaryOp::kDiv:
      if (b == 0) fail("division by zero");
      return static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b));
    case BinaryOp::kFloorDiv:
      if (b == 0) fail("integer division or modulo by zero");
      return floor_div(a, b);
    case BinaryOp::kMod:
      if (b == 0) fail("integer modulo by zero");
      return floor_mod(a, b);
    case BinaryOp::kPow:
      break;
  }
  return power(Value(a), Value(b));
}

Value float_binary(BinaryOp op, double a, double b) {
  const bool divides = op == BinaryOp::kDiv || op == BinaryOp::kFloorDiv || op == BinaryOp::kMod;
  if (divides && b == 0) fail("float division by zero");
  switch (op) {
    case BinaryOp::kAdd:
      return a + b;
    case BinaryOp::kSub:
      return a - b;
    case BinaryOp::kMul:
      return a * b;
    case BinaryOp::kDiv:
      return a / b;
    case BinaryOp::kFloorDiv:
      return float_floor_div(a, b);
    case BinaryOp::kMod:
      return float_mod(a, b);
    case BinaryOp::kPow:
      break;
  }
  return power(Value(a), Value(b));
}

bool is_tuple(ListKind kind) { return kind == ListKind::kTuple || kind == ListKind::kGroup; }

std::optional<Value> add_sequences(Heap& heap, const Value& a, const Value& b) {
  if (a.is(Type::kString) && b.is(Type::kString)) {
    heap.check_text_size(a.str().size() + b.str().size());
    if (a.is_markup() == b.is_markup()) return heap.text(a.str() + b.str(), a.is_markup());
    return heap.text((a.is_markup() ? a.str() : escape_html(a.str())) +
                         (b.is_markup() ? b.str() : escape_html(b.str())),
                     true);
  }
  if (!a.is(Type::kList) || !b.is(Type::kList)) return std::nullopt;
  const bool tuples = is_tuple(a.list().kind) && is_tuple(b.list().kind);
  const bool lists = a.list().kind == ListKind::kList && b.list().kind == ListKind::kList;
  if (!tuples && !lists) return std::nullopt;
  heap.charge(0);
  std::vector<Value> items = a.list().items;
  items.insert(items.end(), b.list().items.begin(), b.list().items.end());
  return heap.list(std::move(items), tuples ? ListKind::kTuple : ListKind::kList);
}

std::optional<Value> repeat(Heap& heap, const Value& a, const Value& b) {
  const Value& sequence = a.is_integral() ? b : a;
  const Value& count = a.is_integral() ? a : b;
  if (!count.is_integral()) return std::nullopt;
  const int64_t times = std::max<int64_t>(0, to_index(count));
  if (sequence.is(Type::kString)) {
    const std::string& text = sequence.str();
    if (text.empty() || times == 0) return heap.text("", sequence.is_markup());
    heap.check_text_size(static_cast<size_t>(
        std::min<Integer>(Integer{times} * static_cast<Integer>(text.size()), Integer{1} << 62)));
    std::string out;
    out.reserve(text.size() * static_cast<size_t>(times));
    for (int64_t i = 0; i < times; ++i) out += text;
    return heap.text(std::move(out), sequence.is_markup());
  }
  if (!sequence.is(Type::kList) || sequence.list().kind > ListKind::kGroup) return std::nullopt;
  const auto& items = sequence.list().items;
  std::vector<Value> out;
  for (int64_t i = 0; i < times && !items.empty(); ++i) {
    heap.step(static_cast<int64_t>(items.size()));
    out.insert(out.end(), items.begin(), items.end());
  }
  return heap.list(std::move(out),
                   sequence.list().kind == ListKind::kList ? ListKind::kList : ListKind::kTuple);
}

// Start, stop and step of a slice over `length` items, as Python clamps them.
struct Range {
  int64_t start, stop, step;
  int64_t count() const {
    if (step > 0) return start < stop ? (stop - start - 1) / step + 1 : 0;
    return stop < start ? (start - stop - 1) / -step + 1 : 0;
  }
};

Range slice_range(int64_t length, const Value* start, const Value* stop, const Value* step) {
  const auto given = [](const Value* bound) { return bound != nullptr && !bound->is(Type::kNone); };
  const auto bound = [](const Value& value) {
    if (!value.is_integral()) {
      if (value.is(Type::kUndefined)) fail(value.str());
      fail("slice indices must be integers or None or have an __index__ method");
    }
    return to_index(value);
  };
  Range range{0, 0, given(step) ? bound(*step) : 1};
  if (range.step == 0) fail("slice step cannot be zero");
  const int64_t low = range.step > 0 ? 0 : -1;
  const int64_t high = range.step > 0 ? length : length - 1;
  const auto clamp = [&](int64_t value) {
    if (value < 0) value += length;
    return std::clamp(value, low, std::max(low, high));
  };
  range.start = given(start) ? clamp(bound(*start)) : (range.step > 0 ? low : high);
  range.stop = given(stop) ? clamp(bound(*stop)) : (range.step > 0 ? high : low);
  return range;
}

Value slice_text(Heap& heap, const Value& value, const Range& range) {
  const std::string& text = value.str();
  heap.touch_bytes(text.size());
  if (range.step == 1) {
    if (range.count() == 0) return heap.text("", value.is_markup());
    const size_t first = byte_of(text, range.start);
    const size_t length = byte_of(std::string_view(text).substr(first), range.stop - range.start);
    return heap.text(text.substr(first, length), value.is_markup());
  }
  heap.step(static_cast<int64_t>(text.size()));
  const auto characters = code_points(text);
  std::string out;
  for (int64_t i = 0, at = range.start; i < range.count(); ++i, at += range.step) {
    out += characters[static_cast<size_t>(at)];
  }
  return heap.text(std::move(out), value.is_markup());
}

}  // namespace

Integer checked(Integer value) {
  if (value > kMaxInteger || value < -kMaxInteger) fail_limit("an integer of more than 126 bits");
  return value;
}

Integer checked_product(Integer a, Integer b) {
  if (a != 0 && magnitude(b) > kMaxInteger / magnitude(a)) {
    fail_limit("an integer of more than 126 bits");
  }
  return a * b;
}

Integer floor_div(Integer a, Integer b) {
  const Integer quotient = a / b;
  return quotient * b != a && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

Value power(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral() && b.as_int() >= 0) {
    Integer result = 1;
    Integer base = a.as_int();
    for (Integer exponent = b.as_int(); exponent > 0;) {
      if (exponent % 2 != 0) result = checked_product(result, base);
      exponent /= 2;
      if (exponent > 0) base = checked_product(base, base);
    }
    return result;
  }
  const double x = a.as_float();
  const double y = b.as_float();
  if (x == 0 && y < 0) fail("0.0 cannot be raised to a negative power");
  if (x < 0 && std::floor(y) != y) fail("a negative number to a fractional power is not real");
  const double result = std::pow(x, y);
  if (std::isinf(result) && std::isfinite(x) && std::isfinite(y))
    fail("Numerical result out of range");
  return result;
}

Value binary(Heap& heap, BinaryOp op, const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral()) return integer_binary(op, a.as_int(), b.as_int());
    return float_binary(op, a.as_float(), b.as_float());
  }
  if (a.is(Type::kString) && op == BinaryOp::kMod) {
    return heap.text(percent_format(heap, a.str(), b), a.is_markup());
  }
  if (a.is(Type::kUndefined)) fail(a.str());
  if (b.is(Type::kUndefined)) fail(b.str());
  std::optional<Value> result;
  if (op == BinaryOp::kAdd) result = add_sequences(heap, a, b);
  if (op == BinaryOp::kMul) result = repeat(heap, a, b);
  if (result) return *result;
  if (op == BinaryOp::kAdd && a.is(Type::kString)) {
    fail(fmt::format("can only concatenate str (not \"{}\") to str", type_name(b)));
  }
  if (op == BinaryOp::kAdd && a.is(Type::kList) && a.list().kind == ListKind::kList) {
    fail(fmt::format("can only concatenate list (not \"{}\") to list", type_name(b)));
  }
  fail(fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", symbol(op), type_name(a),
                   type_name(b)));
}

Value negate(const Value& value) {
  if (value.is(Type::kUndefined)) fail(value.str());
  if (value.is_integral()) return -value.as_int();
  if (!value.is(Type::kFloat)) {
    fail(fmt::format("bad operand type for unary -: '{}'", type_name(value)));
  }
  return -value.as_float();
}

bool contains(Heap& heap, const Value& container, const Value& item) {
  if (container.is(Type::kString)) {
    if (!item.is(Type::kString)) {
      fail(fmt::format("'in <string>' requires string as left operand, not {}", type_name(item)));
    }
    heap.touch_bytes(container.str().size());
    return container.str().find(item.str()) != std::string::npos;
  }
  if (container.is(Type::kDict)) return container.dict().find(item) != nullptr;
  if (!is_iterable(container)) {
    fail(fmt::format("argument of type '{}' is not iterable", type_name(container)));
  }
  const auto items = iterate(heap, container);
  return std::any_of(items.begin(), items.end(),
                     [&](const Value& other) { return equals(item, other); });
}

bool is_iterable(const Value& value) {
  return value.is(Type::kUndefined) || value.is(Type::kString) || value.is(Type::kList) ||
         value.is(Type::kDict) || value.is(Type::kLoop);
}

std::vector<Value> iterate(Heap& heap, const Value& value) {
  std::vector<Value> items;
  switch (value.type()) {
    case Type::kUndefined:
      return items;
    case Type::kString:
      heap.step(static_cast<int64_t>(value.str().size()));
      for (const auto character : code_points(value.str())) {
        items.push_back(heap.text(std::string(character)));  // plain, even of markup
      }
      return items;
    case Type::kDict:
      heap.step(static_cast<int64_t>(value.dict().entries.size()));
      for (const auto& entry : value.dict().entries) items.push_back(entry.first);
      return items;
    case Type::kList: {
      ListObject& list = value.list();
      heap.step(static_cast<int64_t>(list.items.size()));
      if (list.kind != ListKind::kGenerator) return list.items;
      if (list.consumed) return items;
      list.consumed = true;
      return std::exchange(list.items, {});
    }
    default:
      fail(fmt::format("'{}' object is not iterable", type_name(value)));
  }
}

std::optional<int64_t> length_of(const Value& value) {
  switch (value.type()) {
    case Type::kUndefined:
      return 0;
    case Type::kString:
      return num_code_points(value.str());
    case Type::kDict:
      return static_cast<int64_t>(value.dict().entries.size());
    case Type::kList:
      if (value.list().kind == ListKind::kGenerator) return std::nullopt;
      return static_cast<int64_t>(value.list().items.size());
    default:
      return std::nullopt;
  }
}

std::optional<Value> slice(Heap& heap, const Value& value, const Value* start, const Value* stop,
                           const Value* step) {
  if (value.is(Type::kUndefined)) fail(value.str());
  if (value.is(Type::kString)) {
    return slice_text(heap, value, slice_range(num_code_points(value.str()), start, stop, step));
  }
  if (!value.is(Type::kList) || value.list().kind > ListKind::kRange) return std::nullopt;
  const ListObject& list = value.list();
  const Range range = slice_range(static_cast<int64_t>(list.items.size()), start, stop, step);
  std::vector<Value> items;
  for (int64_t i = 0, at = range.start; i < range.count(); ++i, at += range.step) {
    items.push_back(list.items[static_cast<size_t>(at)]);
  }
  Value result =
      heap.list(std::move(items), list.kind == ListKind::kGroup ? ListKind::kTuple : list.kind);
  if (list.kind == ListKind::kRange) {
    result.list().start = list.start + range.start * list.step;
    result.list().stop = list.start + range.stop * list.step;
    result.list().step = list.step * range.step;
  }
  return result;
}

std::optional<Value> element(Heap& heap, const Value& value, const Value& index) {
  if (!index.is_integral()) return std::nullopt;
  int64_t at = to_index(index);
  if (value.is(Type::kString)) {
    heap.touch_bytes(value.str().size());
    const int64_t length = num_code_points(value.str());
    if (at < 0) at += length;
    if (at < 0 || at >= length) return std::nullopt;
    size_t end = byte_of(value.str(), at);
    const size_t first = end;
    next_code_point(value.str(), end);
    return heap.text(value.str().substr(first, end - first), value.is_markup());
  }
  if (!value.is(Type::kList) || value.list().kind > ListKind::kRange) return std::nullopt;
  const auto& items = value.list().items;
  if (at < 0) at += static_cast<int64_t>(items.size());
  if (at < 0 || at >= static_cast<int64_t>(items.size())) return std::nullopt;
  return items[static_cast<size_t>(at)];
}

int64_t to_index(const Value& value) {
  if (value.is(Type::kUndefined)) fail(value.str());
  if (!value.is_integral()) {
    fail(fmt::format("'{}' object cannot be interpreted as an integer", type_name(value)));
  }
  constexpr Integer kFar = Integer{1} << 60;
  return static_cast<int64_t>(std::clamp(value.as_int(), -kFar, kFar));
}

}  // namespace minisgl::jinja
