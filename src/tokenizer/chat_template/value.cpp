#include "tokenizer/chat_template/value.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "tokenizer/chat_template/interpreter.h"
#include "tokenizer/chat_template/python_text.h"

namespace minisgl::jinja {
namespace {

constexpr int kMaxNesting = 200;      // of values inside values, where a function walks them
constexpr size_t kTextOverhead = 96;  // bytes a string costs besides its characters
constexpr size_t kEntryOverhead = 2 * sizeof(Value) + 64;

void check_nesting(int depth) {
  if (depth > kMaxNesting) {
    fail_limit(fmt::format("a value is nested deeper than {} levels", kMaxNesting));
  }
}

std::string repr(const Value& value, int depth);

std::string join_repr(const std::vector<Value>& items, const char* open, const char* close,
                      int depth) {
  std::string out = open;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += ", ";
    out += repr(items[i], depth + 1);
  }
  return out + close;
}

std::string list_repr(const ListObject& list, int depth) {
  switch (list.kind) {
    case ListKind::kList:
      return join_repr(list.items, "[", "]", depth);
    case ListKind::kTuple:
    case ListKind::kGroup:
      return join_repr(list.items, "(", list.items.size() == 1 ? ",)" : ")", depth);
    case ListKind::kRange:
      return list.step == 1
                 ? fmt::format("range({}, {})", integer_text(list.start), integer_text(list.stop))
                 : fmt::format("range({}, {}, {})", integer_text(list.start),
                               integer_text(list.stop), integer_text(list.step));
    case ListKind::kItems:
      return join_repr(list.items, "dict_items([", "])", depth);
    case ListKind::kKeys:
      return join_repr(list.items, "dict_keys([", "])", depth);
    case ListKind::kValues:
      return join_repr(list.items, "dict_values([", "])", depth);
    case ListKind::kGenerator:
      return fmt::format("<{} object>", list.generator_name);
  }
  return {};
}

std::string dict_repr(const DictObject& dict, int depth) {
  std::string out = "{";
  for (size_t i = 0; i < dict.entries.size(); ++i) {
    if (i > 0) out += ", ";
    out += repr(dict.entries[i].first, depth + 1);
    out += ": ";
    out += repr(dict.entries[i].second, depth + 1);
  }
  return out + "}";
}

std::string repr(const Value& value, int depth) {
  check_nesting(depth);
  switch (value.type()) {
    case Type::kUndefined:
      return "Undefined";
    case Type::kNone:
      return "None";
    case Type::kBool:
      return value.as_bool() ? "True" : "False";
    case Type::kInt:
      return integer_text(value.as_int());
    case Type::kFloat:
      return float_text(value.as_float());
    case Type::kString:
      return value.is_markup() ? fmt::format("Markup({})", repr_text(value.str()))
                               : repr_text(value.str());
    case Type::kList:
      return list_repr(value.list(), depth);
    case Type::kDict:
      return dict_repr(value.dict(), depth);
    case Type::kNamespace:
      return fmt::format("<Namespace {}>", dict_repr(value.dict(), depth));
    case Type::kMacro:
      return fmt::format("<Macro '{}'>", value.macro().name);
    case Type::kLoop:
      return fmt::format("<LoopContext {}/{}>", value.loop().index0 + 1, value.loop().length());
    case Type::kNative:
      return fmt::format("<function {}>", value.native().name);
    case Type::kMethod:
      return fmt::format("<built-in method {} of {} object>", value.method().name,
                         type_name(value.method().self));
  }
  return {};
}

// Items of a tuple and of a list compare only within their kind.
bool comparable_lists(const ListObject& a, const ListObject& b) {
  const auto is_tuple = [](ListKind kind) {
    return kind == ListKind::kTuple || kind == ListKind::kGroup;
  };
  return a.kind == b.kind || (is_tuple(a.kind) && is_tuple(b.kind));
}

bool equal_at(const Value& a, const Value& b, int depth);

bool equal_lists(const ListObject& a, const ListObject& b, int depth) {
  if (!comparable_lists(a, b) || a.items.size() != b.items.size()) return false;
  for (size_t i = 0; i < a.items.size(); ++i) {
    if (!equal_at(a.items[i], b.items[i], depth + 1)) return false;
  }
  return true;
}

bool equal_dicts(const DictObject& a, const DictObject& b, int depth) {
  if (a.entries.size() != b.entries.size()) return false;
  for (const auto& [key, value] : a.entries) {
    const Value* other = b.find(key);
    if (other == nullptr || !equal_at(value, *other, depth + 1)) return false;
  }
  return true;
}

bool equal_numbers(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) return a.as_int() == b.as_int();
  return static_cast<long double>(a.is_integral() ? static_cast<long double>(a.as_int())
                                                  : a.as_float()) ==
         (b.is_integral() ? static_cast<long double>(b.as_int()) : b.as_float());
}

bool equal_at(const Value& a, const Value& b, int depth) {
  check_nesting(depth);
  if (a.is_number() && b.is_number()) return equal_numbers(a, b);
  if (a.type() != b.type()) return false;
  switch (a.type()) {
    case Type::kUndefined:
    case Type::kNone:
      return true;
    case Type::kString:
      return a.str() == b.str();
    case Type::kList:
      if (a.identity() == b.identity()) return true;
      if (a.list().kind == ListKind::kGenerator) return false;
      return equal_lists(a.list(), b.list(), depth);
    case Type::kDict:
      return a.identity() == b.identity() || equal_dicts(a.dict(), b.dict(), depth);
    case Type::kMethod:
      return a.method().name == b.method().name && same(a.method().self, b.method().self);
    default:
      return a.identity() == b.identity();
  }
}

bool less_at(const Value& a, const Value& b, const char* op, int depth) {
  check_nesting(depth);
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral()) return a.as_int() < b.as_int();
    return a.as_float() < b.as_float();
  }
  if (a.is(Type::kString) && b.is(Type::kString)) return a.str() < b.str();
  for (const Value* side : {&a, &b}) {
    if (side->is(Type::kUndefined)) fail(side->str());
  }
  const bool ordered = a.is(Type::kList) && b.is(Type::kList) &&
                       comparable_lists(a.list(), b.list()) && a.list().kind <= ListKind::kGroup;
  if (!ordered) {
    fail(fmt::format("'{}' not supported between instances of '{}' and '{}'", op, type_name(a),
                     type_name(b)));
  }
  const auto& x = a.list().items;
  const auto& y = b.list().items;
  for (size_t i = 0; i < x.size() && i < y.size(); ++i) {
    if (!equal_at(x[i], y[i], depth + 1)) return less_at(x[i], y[i], op, depth + 1);
  }
  return x.size() < y.size();
}

size_t hash_at(const Value& value, int depth) {
  check_nesting(depth);
  switch (value.type()) {
    case Type::kBool:
    case Type::kInt:
    case Type::kFloat:
      return std::hash<double>()(value.as_float());
    case Type::kString:
      return std::hash<std::string_view>()(value.str());
    case Type::kNone:
      return 0x4e6f6e65;
    case Type::kUndefined:
      return 0x556e6465;
    case Type::kList:
      if (value.list().kind != ListKind::kList && value.list().kind <= ListKind::kRange) {
        size_t hash = 0x345678;
        for (const Value& item : value.list().items) {
          hash = hash * 1000003 + hash_at(item, depth + 1);
        }
        return hash;
      }
      [[fallthrough]];
    case Type::kDict:
      fail(fmt::format("unhashable type: '{}'", type_name(value)));
    default:
      return std::hash<const void*>()(value.identity());
  }
}

}  // namespace

void fail(const std::string& message) { throw Failure(ErrorKind::kInvalidArgument, message); }
void fail_limit(const std::string& message) { throw Failure(ErrorKind::kInvalidArgument, message); }

TextObject::TextObject(std::string t, bool is_markup, Heap* account)
    : text(std::move(t)), markup(is_markup), heap(account) {
  if (heap != nullptr) heap->charge(text.size() + kTextOverhead);
}

TextObject::~TextObject() {
  if (heap != nullptr) heap->give_back(text.size() + kTextOverhead);
}

Value Value::constant(std::string text) {
  return Value::text(std::make_shared<const TextObject>(std::move(text), false, nullptr));
}

Value Value::undefined(std::string message) {
  Value value = constant(std::move(message));
  value.type_ = Type::kUndefined;
  return value;
}

Value Value::text(std::shared_ptr<const TextObject> object) {
  Value value;
  value.type_ = Type::kString;
  value.text_ = std::move(object);
  return value;
}

const Value* DictObject::find(const Value& key) const {
  const size_t position = position_of(key);
  return position == entries.size() ? nullptr : &entries[position].second;
}

const Value* DictObject::find(std::string_view key) const {
  const auto [first, last] = index_.equal_range(std::hash<std::string_view>()(key));
  for (auto it = first; it != last; ++it) {
    const auto& entry = entries[it->second];
    if (entry.first.is(Type::kString) && entry.first.str() == key) return &entry.second;
  }
  return nullptr;
}

size_t DictObject::position_of(const Value& key) const {
  const auto [first, last] = index_.equal_range(hash_of(key));
  for (auto it = first; it != last; ++it) {
    if (equals(entries[it->second].first, key)) return it->second;
  }
  return entries.size();
}

void DictObject::set(const Value& key, Value value) {
  const size_t position = position_of(key);
  if (position < entries.size()) {
    entries[position].second = std::move(value);
    return;
  }
  index_.emplace(hash_of(key), entries.size());
  entries.emplace_back(key, std::move(value));
}

void DictObject::erase(size_t position) {
  entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(position));
  index_.clear();
  for (size_t i = 0; i < entries.size(); ++i) index_.emplace(hash_of(entries[i].first), i);
}

void DictObject::clear() {
  entries.clear();
  index_.clear();
}

Value Heap::text(std::string text, bool markup) {
  check_text_size(text.size());
  touch_bytes(text.size());
  return Value::text(std::make_shared<const TextObject>(std::move(text), markup, this));
}

Value Heap::list(std::vector<Value> items, ListKind kind) {
  ListObject* list = new_list(kind);
  step(static_cast<int64_t>(items.size()));
  charge(items.size() * sizeof(Value));
  list->items = std::move(items);
  return list;
}

ListObject* Heap::new_list(ListKind kind) {
  charge(sizeof(ListObject));
  lists_.emplace_back().kind = kind;
  return &lists_.back();
}

DictObject* Heap::new_dict() {
  charge(sizeof(DictObject));
  return &dicts_.emplace_back();
}

NativeObject* Heap::new_native(NativeObject object) {
  charge(sizeof(NativeObject) + kTextOverhead);
  return &natives_.emplace_back(std::move(object));
}

MethodObject* Heap::new_method(MethodObject object) {
  charge(sizeof(MethodObject));
  return &methods_.emplace_back(std::move(object));
}

void Heap::append(ListObject& list, Value value) {
  charge(sizeof(Value));
  step();
  list.items.push_back(std::move(value));
}

void Heap::set(DictObject& dict, const Value& key, Value value) {
  charge(kEntryOverhead);
  step();
  dict.set(key, std::move(value));
}

void Heap::check_text_size(size_t bytes) const {
  if (bytes > limits_.max_output_bytes) {
    fail_limit(fmt::format("a text of {} bytes is more than the {} that a chat template may make",
                           bytes, limits_.max_output_bytes));
  }
}

void Heap::charge(size_t bytes) {
  if (bytes > limits_.max_memory_bytes || bytes_ > limits_.max_memory_bytes - bytes) {
    fail_limit(fmt::format("the chat template needs more than {} bytes of memory",
                           limits_.max_memory_bytes));
  }
  bytes_ += bytes;
}

void Heap::out_of_steps() const {
  fail_limit(fmt::format("the chat template took more than {} steps; does it loop for ever?",
                         limits_.max_steps));
}

bool truthy(const Value& value) {
  switch (value.type()) {
    case Type::kUndefined:
    case Type::kNone:
      return false;
    case Type::kBool:
    case Type::kInt:
      return value.as_int() != 0;
    case Type::kFloat:
      return value.as_float() != 0.0;
    case Type::kString:
      return !value.str().empty();
    case Type::kList:
      return value.list().kind == ListKind::kGenerator || !value.list().items.empty();
    case Type::kDict:
      return !value.dict().entries.empty();
    default:
      return true;
  }
}

std::string type_name(const Value& value) {
  switch (value.type()) {
    case Type::kUndefined:
      return "Undefined";
    case Type::kNone:
      return "NoneType";
    case Type::kBool:
      return "bool";
    case Type::kInt:
      return "int";
    case Type::kFloat:
      return "float";
    case Type::kString:
      return value.is_markup() ? "Markup" : "str";
    case Type::kList:
      switch (value.list().kind) {
        case ListKind::kList:
          return "list";
        case ListKind::kTuple:
          return "tuple";
        case ListKind::kGroup:
          return "_GroupTuple";
        case ListKind::kRange:
          return "range";
        case ListKind::kGenerator:
          return value.list().generator_name;
        case ListKind::kItems:
          return "dict_items";
        case ListKind::kKeys:
          return "dict_keys";
        case ListKind::kValues:
          return "dict_values";
      }
      return "list";
    case Type::kDict:
      return "dict";
    case Type::kNamespace:
      return "Namespace";
    case Type::kMacro:
      return "Macro";
    case Type::kLoop:
      return "LoopContext";
    case Type::kNative:
      return "function";
    case Type::kMethod:
      return "builtin_function_or_method";
  }
  return {};
}

std::string to_text(const Value& value) {
  if (value.is(Type::kString)) return value.str();
  if (value.is(Type::kUndefined)) return {};
  return repr(value, 0);
}

std::string to_repr(const Value& value) { return repr(value, 0); }

bool equals(const Value& a, const Value& b) { return equal_at(a, b, 0); }

bool same(const Value& a, const Value& b) {
  if (a.type() != b.type()) return false;
  switch (a.type()) {
    case Type::kUndefined:
    case Type::kNone:
      return true;
    case Type::kBool:
    case Type::kInt:
    case Type::kFloat:
    case Type::kString:
      return equals(a, b);
    default:
      return a.identity() == b.identity();
  }
}

bool less_than(const Value& a, const Value& b, const char* op) { return less_at(a, b, op, 0); }

size_t hash_of(const Value& value) { return hash_at(value, 0); }

std::string integer_text(Integer value) { return fmt::format("{}", value); }

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto scientific =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific);
  const std::string text(buffer, scientific.ptr);
  const int exponent = std::stoi(text.substr(text.find('e') + 1));
  if (exponent < -4 || exponent >= 16) return text;
  const auto fixed =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::fixed);
  std::string out(buffer, fixed.ptr);
  if (out.find('.') == std::string::npos) out += ".0";
  return out;
}

Integer to_integer(double value) {
  if (std::isnan(value)) fail("cannot convert float NaN to integer");
  if (std::isinf(value)) fail("cannot convert float infinity to integer");
  if (std::fabs(value) >= 8.5e37) fail_limit("an integer of more than 126 bits");
  return static_cast<Integer>(value);
}

}  // namespace minisgl::jinja
