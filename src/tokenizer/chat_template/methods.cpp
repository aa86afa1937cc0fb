// The methods of Python's str, list, tuple and dict, and those of a loop.
#include <fmt/format.h>

#include <algorithm>

#include "tokenizer/chat_template/builtins.h"
#include "tokenizer/chat_template/operators.h"
#include "tokenizer/chat_template/python_format.h"
#include "tokenizer/chat_template/python_text.h"

namespace minisgl::jinja {
namespace {

using Method = Value (*)(Interpreter&, const Value& self, Arguments&);
struct MethodEntry {
  std::string_view name;
  Method method;
};

// ---- str

Value text_like(Interpreter& in, const Value& self, std::string text) {
  return in.heap().text(std::move(text), self.is_markup());
}

template <std::string (*kChange)(std::string_view)>
Value change_case(Interpreter& in, const Value& self, Arguments& arguments) {
  bind("str method", arguments, {});
  return text_like(in, self, kChange(self.str()));
}

template <TextClass kClass>
Value test_class(Interpreter& in, const Value& self, Arguments& arguments) {
  bind("str method", arguments, {});
  in.heap().touch_bytes(self.str().size());
  return has_class(self.str(), kClass);
}

template <Side kSide>
Value strip_method(Interpreter& in, const Value& self, Arguments& arguments) {
  const auto values = bind("strip", arguments, {{"chars", Value()}});
  std::optional<std::string_view> chars;
  if (!values[0].is(Type::kNone)) chars = text_of("strip", values[0]);
  return text_like(in, self, std::string(strip(self.str(), kSide, chars)));
}

Value text_list(Interpreter& in, const Value& self, const std::vector<std::string_view>& parts,
                ListKind kind = ListKind::kList) {
  std::vector<Value> items;
  items.reserve(parts.size());
  for (const auto part : parts) items.push_back(text_like(in, self, std::string(part)));
  return in.heap().list(std::move(items), kind);
}

template <bool kFromTheRight>
Value split_method(Interpreter& in, const Value& self, Arguments& arguments) {
  const auto values = bind("split", arguments, {{"sep", Value()}, {"maxsplit", Value(-1)}});
  std::optional<std::string_view> separator;
  if (!values[0].is(Type::kNone)) {
    separator = text_of("split", values[0]);
    if (separator->empty()) fail("empty separator");
  }
  in.heap().touch_bytes(self.str().size());
  const int64_t max_split = to_index(values[1]);
  return text_list(in, self,
                   kFromTheRight ? rsplit(self.str(), separator, max_split)
                                 : split(self.str(), separator, max_split));
}

Value splitlines_method(Interpreter& in, const Value& self, Arguments& arguments) {
  const auto values = bind("splitlines", arguments, {{"keepends", Value(false)}});
  return text_list(in, self, split_lines(self.str(), truthy(values[0])));
}

template <bool kFromTheRight>
Value partition_method(Interpreter& in, const Value& self, Arguments& arguments) {
  const auto values = bind("partition", arguments, {{"sep"}});
  const std::string_view separator = text_of("partition", values[0]);
  if (separator.empty()) fail("empty separator");
  const std::string_view text = self.str();
  const size_t found = kFromTheRight ? text.rfind(separator) : text.find(separator);
  if (found == std::string_view::npos) {
    return kFromTheRight ? text_list(in, self, {"", "", text}, ListKind::kTuple)
                         : text_list(in, self, {text, "", ""}, ListKind::kTuple);
  }
  return text_list(in, self,
                   {text.substr(0, found), separator, text.substr(found + separator.size())},
                   ListKind::kTuple);
}

// The part of the text that optional start and end arguments (Python's slice rules) leave.
struct Window {
  std::string_view text;
  int64_t start;
  bool valid;  // start is not behind the end
};

Window window_of(const Value& self, const Value& start, const Value& end) {
  const std::string_view text = self.str();
  if (start.is(Type::kNone) && end.is(Type::kNone)) return {text, 0, true};
  const int64_t length = num_code_points(text);
  const auto clamp = [&](const Value& value, int64_t fallback) {
    if (value.is(Type::kNone)) return fallback;
    int64_t at = to_index(value);
    if (at < 0) at = std::max<int64_t>(0, at + length);
    return at;
  };
  const int64_t first = clamp(start, 0);
  const int64_t last = std::min(clamp(end, length), length);
  if (first > last) return {{}, first, false};
  const size_t begin = byte_of(text, first);
  return {text.substr(begin, byte_of(text, last) - begin), first, true};
}

template <bool kAtStart>
Value affix_method(Interpreter& in, const Value& self, Arguments& arguments) {
  const char* name = kAtStart ? "startswith" : "endswith";
  const auto values = bind(name, arguments, {{"affix"}, {"start", Value()}, {"end", Value()}});
  const Window window = window_of(self, values[1], values[2]);
  in.heap().step();
  const auto matches = [&](const Value& affix) {
    const std::string& text = text_of(name, affix);
    if (!window.valid) return false;
    return kAtStart ? window.text.substr(0, text.size()) == text
                    : window.text.size() >= text.size() &&
                          window.text.substr(window.text.size() - text.size()) == text;
  };
  if (values[0].is(Type::kList) && values[0].list().kind <= ListKind::kGroup) {
    if (values[0].list().kind == ListKind::kList) {
      fail(fmt::format("{} first arg must be str or a tuple of str, not list", name));
    }
    const auto& affixes = values[0].list().items;
    return std::any_of(affixes.begin(), affixes.end(), matches);
  }
  return matches(values[0]);
}

template <bool kFromTheRight, bool kMustExist>
Value find_method(Interpreter& in, const Value& self, Arguments& arguments) {
  const auto values = bind("find", arguments, {{"sub"}, {"start", Value()}, {"end", Value()}});
  const std::string& part = text_of("find", values[0]);
  const Window window = window_of(self, values[1], values[2]);
  in.heap().touch_bytes(self.str().size());
  const int64_t found = window.valid ? find_substring(window.text, part, kFromTheRight) : -1;
  if (found < 0 && kMustExist) fail("substring not found");
  return found < 0 ? found : found + window.start;
}

Value count_method(Interpreter& in, const Value& self, Arguments& arguments) {
  const auto values = bind("count", arguments, {{"sub"}, {"start", Value()}, {"end", Value()}});
  const Window window = window_of(self, values[1], values[2]);
  in.heap().touch_bytes(self.str().size());
  return window.valid ? count_substring(window.text, text_of("count", values[0])) : int64_t{0};
}

Value replace_method(Interpreter& in, const Value& self, Arguments& arguments) {
  const auto values = bind("replace", arguments, {{"old"}, {"new"}, {"count", Value(-1)}});
  const std::string& from = text_of("replace", values[0]);
  const auto escaped = [&](const Value& value) {
    return self.is_markup() && !value.is_markup() ? escape_html(text_of("replace", value))
                                                  : text_of("replace", value);
  };
  const std::string to = escaped(values[1]);
  const size_t growth = to.size() > from.size() ? to.size() - from.size() : 0;
  const int64_t times = growth > 0 ? count_substring(self.str(), from) : 0;
  in.heap().check_text_size(self.str().size() + static_cast<size_t>(times) * growth);
  return text_like(in, self, replace(self.str(), from, to, to_index(values[2])));
}

Value join_method(Interpreter& in, const Value& self, Arguments& arguments) {
  const auto values = bind("join", arguments, {{"iterable"}});
  std::string out;
  size_t index = 0;
  for (const Value& item : iterate(in.heap(), values[0])) {
    if (!item.is(Type::kString)) {
      fail(
          fmt::format("sequence item {}: expected str instance, {} found", index, type_name(item)));
    }
    if (index++ > 0) out += self.str();
    out += self.is_markup() && !item.is_markup() ? escape_html(item.str()) : item.str();
    in.heap().check_text_size(out.size());
  }
  return text_like(in, self, std::move(out));
}

Value format_text_method(Interpreter& in, const Value& self, Arguments& arguments) {
  const FieldAccess access{
      [&in](const Value& object, const std::string& name) { return in.attribute(object, name); },
      [&in](const Value& object, const Value& key) { return in.item(object, key); }};
  return text_like(in, self, format_method(in.heap(), self.str(), arguments, access));
}

template <bool kPrefix>
Value remove_affix(Interpreter& in, const Value& self, Arguments& arguments) {
  const auto values = bind(kPrefix ? "removeprefix" : "removesuffix", arguments, {{"affix"}});
  const std::string& affix = text_of("remove affix", values[0]);
  const std::string& text = self.str();
  if (affix.empty() || text.size() < affix.size()) return self;
  const size_t at = kPrefix ? 0 : text.size() - affix.size();
  if (text.compare(at, affix.size(), affix) != 0) return self;
  return text_like(in, self, kPrefix ? text.substr(affix.size()) : text.substr(0, at));
}

// ljust '<', rjust '>', center '^'
template <char kAlign>
Value justify(Interpreter& in, const Value& self, Arguments& arguments) {
  const auto values = bind("justify", arguments, {{"width"}, {"fillchar", Value::constant(" ")}});
  const std::string& fill = text_of("justify", values[1]);
  if (num_code_points(fill) != 1) fail("The fill character must be exactly one character long");
  const int64_t missing = to_index(values[0]) - num_code_points(self.str());
  if (missing <= 0) return self;
  in.heap().check_text_size(self.str().size() + static_cast<size_t>(missing) * fill.size());
  // str.center puts the odd fill character on the left where the width is odd.
  const int64_t width = to_index(values[0]);
  const int64_t left = kAlign == '<'   ? 0
                       : kAlign == '>' ? missing
                                       : missing / 2 + (missing & width & 1);
  std::string out;
  for (int64_t i = 0; i < left; ++i) out += fill;
  out += self.str();
  for (int64_t i = left; i < missing; ++i) out += fill;
  return text_like(in, self, std::move(out));
}

Value zfill_method(Interpreter& in, const Value& self, Arguments& arguments) {
  const int64_t width = to_index(bind("zfill", arguments, {{"width"}})[0]);
  const std::string& text = self.str();
  const int64_t missing = width - num_code_points(text);
  if (missing <= 0) return self;
  in.heap().check_text_size(text.size() + static_cast<size_t>(missing));
  const size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  return text_like(
      in, self,
      text.substr(0, sign) + std::string(static_cast<size_t>(missing), '0') + text.substr(sign));
}

Value expandtabs_method(Interpreter& in, const Value& self, Arguments& arguments) {
  const int64_t size = to_index(bind("expandtabs", arguments, {{"tabsize", Value(8)}})[0]);
  std::string out;
  int64_t column = 0;
  const std::string& text = self.str();
  for (size_t pos = 0; pos < text.size();) {
    const size_t start = pos;
    const char32_t c = next_code_point(text, pos);
    if (c == '\t') {
      const int64_t spaces = size > 0 ? size - column % size : 0;
      in.heap().check_text_size(out.size() + static_cast<size_t>(spaces));
      out.append(static_cast<size_t>(spaces), ' ');
      column += spaces;
    } else {
      out.append(text, start, pos - start);
      column = c == '\n' || c == '\r' ? 0 : column + 1;
    }
  }
  return text_like(in, self, std::move(out));
}

Value isidentifier_method(Interpreter&, const Value& self, Arguments& arguments) {
  bind("isidentifier", arguments, {});
  return is_identifier(self.str());
}

constexpr MethodEntry kTextMethods[] = {
    {"strip", strip_method<Side::kBoth>},
    {"lstrip", strip_method<Side::kLeft>},
    {"rstrip", strip_method<Side::kRight>},
    {"split", split_method<false>},
    {"rsplit", split_method<true>},
    {"splitlines", splitlines_method},
    {"partition", partition_method<false>},
    {"rpartition", partition_method<true>},
    {"startswith", affix_method<true>},
    {"endswith", affix_method<false>},
    {"find", find_method<false, false>},
    {"rfind", find_method<true, false>},
    {"index", find_method<false, true>},
    {"rindex", find_method<true, true>},
    {"count", count_method},
    {"replace", replace_method},
    {"join", join_method},
    {"format", format_text_method},
    {"removeprefix", remove_affix<true>},
    {"removesuffix", remove_affix<false>},
    {"ljust", justify<'<'>},
    {"rjust", justify<'>'>},
    {"center", justify<'^'>},
    {"zfill", zfill_method},
    {"expandtabs", expandtabs_method},
    {"upper", change_case<upper>},
    {"lower", change_case<lower>},
    {"casefold", change_case<lower>},
    {"title", change_case<title>},
    {"capitalize", change_case<capitalize>},
    {"swapcase", change_case<swapcase>},
    {"isalpha", test_class<TextClass::kAlpha>},
    {"isdigit", test_class<TextClass::kDigit>},
    {"isdecimal", test_class<TextClass::kDecimal>},
    {"isnumeric", test_class<TextClass::kNumeric>},
    {"isalnum", test_class<TextClass::kAlnum>},
    {"isspace", test_class<TextClass::kSpace>},
    {"islower", test_class<TextClass::kLower>},
    {"isupper", test_class<TextClass::kUpper>},
    {"istitle", test_class<TextClass::kTitle>},
    {"isascii", test_class<TextClass::kAscii>},
    {"isprintable", test_class<TextClass::kPrintable>},
    {"isidentifier", isidentifier_method},
};

// ---- list and tuple

Value index_method(Interpreter& in, const Value& self, Arguments& arguments) {
  const auto values = bind("index", arguments, {{"value"}, {"start", Value(0)}, {"stop", Value()}});
  const auto& items = self.list().items;
  const auto size = static_cast<int64_t>(items.size());
  const auto clamp = [&](const Value& value) {
    const int64_t at = to_index(value);
    return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
  };
  in.heap().step(size);
  const int64_t stop = values[2].is(Type::kNone) ? size : clamp(values[2]);
  for (int64_t i = clamp(values[1]); i < stop; ++i) {
    if (equals(items[static_cast<size_t>(i)], values[0])) return i;
  }
  fail(fmt::format("{} is not in list", to_repr(values[0])));
}

Value count_items(Interpreter& in, const Value& self, Arguments& arguments) {
  const Value wanted = bind("count", arguments, {{"value"}})[0];
  const auto& items = self.list().items;
  in.heap().step(static_cast<int64_t>(items.size()));
  return static_cast<int64_t>(
      std::count_if(items.begin(), items.end(), [&](const Value& v) { return equals(v, wanted); }));
}

Value append_method(Interpreter& in, const Value& self, Arguments& arguments) {
  in.heap().append(self.list(), bind("append", arguments, {{"object"}})[0]);
  return Value();
}

Value extend_method(Interpreter& in, const Value& self, Arguments& arguments) {
  for (const Value& item : iterate(in.heap(), bind("extend", arguments, {{"iterable"}})[0])) {
    in.heap().append(self.list(), item);
  }
  return Value();
}

Value insert_method(Interpreter& in, const Value& self, Arguments& arguments) {
  const auto values = bind("insert", arguments, {{"index"}, {"object"}});
  auto& items = self.list().items;
  const auto size = static_cast<int64_t>(items.size());
  const int64_t at = to_index(values[0]);
  in.heap().charge(sizeof(Value));
  in.heap().step(size);
  items.insert(items.begin() + std::clamp<int64_t>(at < 0 ? at + size : at, 0, size), values[1]);
  return Value();
}

Value pop_item(Interpreter& in, const Value& self, Arguments& arguments) {
  auto& items = self.list().items;
  const auto size = static_cast<int64_t>(items.size());
  int64_t at = to_index(bind("pop", arguments, {{"index", Value(-1)}})[0]);
  if (at < 0) at += size;
  if (size == 0) fail("pop from empty list");
  if (at < 0 || at >= size) fail("pop index out of range");
  in.heap().step(size - at);
  Value value = std::move(items[static_cast<size_t>(at)]);
  items.erase(items.begin() + at);
  return value;
}

Value remove_item(Interpreter& in, const Value& self, Arguments& arguments) {
  const Value wanted = bind("remove", arguments, {{"value"}})[0];
  auto& items = self.list().items;
  in.heap().step(static_cast<int64_t>(items.size()));
  const auto found =
      std::find_if(items.begin(), items.end(), [&](const Value& v) { return equals(v, wanted); });
  if (found == items.end()) fail("list.remove(x): x not in list");
  items.erase(found);
  return Value();
}

Value reverse_items(Interpreter& in, const Value& self, Arguments& arguments) {
  bind("reverse", arguments, {});
  in.heap().step(static_cast<int64_t>(self.list().items.size()));
  std::reverse(self.list().items.begin(), self.list().items.end());
  return Value();
}

Value sort_items(Interpreter& in, const Value& self, Arguments& arguments) {
  const bool reverse = truthy(bind("sort", arguments, {{"reverse", Value(false)}})[0]);
  auto& items = self.list().items;
  in.heap().step(static_cast<int64_t>(items.size()) * 16);
  std::stable_sort(items.begin(), items.end(), [&](const Value& a, const Value& b) {
    return reverse ? less_than(b, a) : less_than(a, b);
  });
  return Value();
}

Value clear_items(Interpreter&, const Value& self, Arguments& arguments) {
  bind("clear", arguments, {});
  self.list().items.clear();
  return Value();
}

Value copy_items(Interpreter& in, const Value& self, Arguments& arguments) {
  bind("copy", arguments, {});
  return in.heap().list(self.list().items);
}

constexpr MethodEntry kTupleMethods[] = {{"index", index_method}, {"count", count_items}};

constexpr MethodEntry kListMethods[] = {
    {"index", index_method},   {"count", count_items},     {"append", append_method},
    {"extend", extend_method}, {"insert", insert_method},  {"pop", pop_item},
    {"remove", remove_item},   {"reverse", reverse_items}, {"sort", sort_items},
    {"clear", clear_items},    {"copy", copy_items},
};

// ---- dict

template <ListKind kKind>
Value view_method(Interpreter& in, const Value& self, Arguments& arguments) {
  bind("dict view", arguments, {});
  std::vector<Value> items;
  for (const auto& [key, value] : self.dict().entries) {
    items.push_back(kKind == ListKind::kItems  ? in.heap().list({key, value}, ListKind::kTuple)
                    : kKind == ListKind::kKeys ? key
                                               : value);
  }
  return in.heap().list(std::move(items), kKind);
}

Value get_method(Interpreter&, const Value& self, Arguments& arguments) {
  const auto values = bind("get", arguments, {{"key"}, {"default", Value()}});
  const Value* found = self.dict().find(values[0]);
  return found == nullptr ? values[1] : *found;
}

Value pop_entry(Interpreter& in, const Value& self, Arguments& arguments) {
  const bool has_default = arguments.positional.size() + arguments.keyword.size() > 1;
  const auto values = bind("pop", arguments, {{"key"}, {"default", Value()}});
  DictObject& dict = self.dict();
  const size_t position = dict.position_of(values[0]);
  if (position == dict.entries.size()) {
    if (!has_default) fail(to_repr(values[0]));
    return values[1];
  }
  Value value = dict.entries[position].second;
  in.heap().step(static_cast<int64_t>(dict.entries.size()));
  dict.erase(position);
  return value;
}

Value popitem_method(Interpreter& in, const Value& self, Arguments& arguments) {
  bind("popitem", arguments, {});
  DictObject& dict = self.dict();
  if (dict.entries.empty()) fail("popitem(): dictionary is empty");
  const auto entry = dict.entries.back();
  in.heap().step(static_cast<int64_t>(dict.entries.size()));
  dict.erase(dict.entries.size() - 1);
  return in.heap().list({entry.first, entry.second}, ListKind::kTuple);
}

Value setdefault_method(Interpreter& in, const Value& self, Arguments& arguments) {
  const auto values = bind("setdefault", arguments, {{"key"}, {"default", Value()}});
  if (const Value* found = self.dict().find(values[0])) return *found;
  in.heap().set(self.dict(), values[0], values[1]);
  return values[1];
}

Value update_method(Interpreter& in, const Value& self, Arguments& arguments) {
  const DictObject* other = make_dict(in, "update", arguments);
  for (const auto& [key, value] : other->entries) in.heap().set(self.dict(), key, value);
  return Value();
}

Value clear_entries(Interpreter&, const Value& self, Arguments& arguments) {
  bind("clear", arguments, {});
  self.dict().clear();
  return Value();
}

Value copy_entries(Interpreter& in, const Value& self, Arguments& arguments) {
  bind("copy", arguments, {});
  DictObject* copy = in.heap().new_dict();
  for (const auto& [key, value] : self.dict().entries) in.heap().set(*copy, key, value);
  return copy;
}

Value fromkeys_method(Interpreter& in, const Value&, Arguments& arguments) {
  const auto values = bind("fromkeys", arguments, {{"iterable"}, {"value", Value()}});
  DictObject* dict = in.heap().new_dict();
  for (const Value& key : iterate(in.heap(), values[0])) in.heap().set(*dict, key, values[1]);
  return dict;
}

constexpr MethodEntry kDictMethods[] = {
    {"items", view_method<ListKind::kItems>},
    {"keys", view_method<ListKind::kKeys>},
    {"values", view_method<ListKind::kValues>},
    {"get", get_method},
    {"pop", pop_entry},
    {"popitem", popitem_method},
    {"setdefault", setdefault_method},
    {"update", update_method},
    {"clear", clear_entries},
    {"copy", copy_entries},
    {"fromkeys", fromkeys_method},
};

// ---- loop

Value cycle_method(Interpreter&, const Value& self, Arguments& arguments) {
  if (arguments.positional.empty()) fail("no items for cycling given");
  const auto size = static_cast<int64_t>(arguments.positional.size());
  return arguments.positional[static_cast<size_t>(self.loop().index0 % size)];
}

Value changed_method(Interpreter&, const Value& self, Arguments& arguments) {
  LoopObject& loop = self.loop();
  const bool same_as_before =
      loop.has_last_changed && loop.last_changed.size() == arguments.positional.size() &&
      std::equal(loop.last_changed.begin(), loop.last_changed.end(), arguments.positional.begin(),
                 [](const Value& a, const Value& b) { return equals(a, b); });
  if (same_as_before) return false;
  loop.last_changed = arguments.positional;
  loop.has_last_changed = true;
  return true;
}

constexpr MethodEntry kLoopMethods[] = {{"cycle", cycle_method}, {"changed", changed_method}};

template <size_t kCount>
Method find_in(const MethodEntry (&entries)[kCount], std::string_view name) {
  for (const MethodEntry& entry : entries) {
    if (entry.name == name) return entry.method;
  }
  return nullptr;
}

Method find_method_of(const Value& object, std::string_view name) {
  switch (object.type()) {
    case Type::kString:
      return find_in(kTextMethods, name);
    case Type::kDict:
      return find_in(kDictMethods, name);
    case Type::kLoop:
      return find_in(kLoopMethods, name);
    case Type::kList:
      if (object.list().kind == ListKind::kList) return find_in(kListMethods, name);
      return object.list().kind <= ListKind::kRange ? find_in(kTupleMethods, name) : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace

bool has_method(const Value& object, std::string_view name) {
  return find_method_of(object, name) != nullptr;
}

Value call_method(Interpreter& interpreter, MethodObject& method, Arguments& arguments) {
  const Method function = find_method_of(method.self, method.name);
  return function(interpreter, method.self, arguments);
}

}  // namespace minisgl::jinja
