// Jinja's filters: what stands behind a bar.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_set>

#include "tokenizer/chat_template/builtins.h"
#include "tokenizer/chat_template/operators.h"
#include "tokenizer/chat_template/python_format.h"
#include "tokenizer/chat_template/python_text.h"

namespace minisgl::jinja {
namespace {

Value none() { return Value(); }

// soft_str: text stays what it is (markup too), all else is printed.
Value as_text(Interpreter& in, const Value& value) {
  return value.is(Type::kString) ? value : in.heap().text(to_text(value));
}

Value text_like(Interpreter& in, const Value& self, std::string text) {
  return in.heap().text(std::move(text), self.is_markup());
}

Value generator(Interpreter& in, std::vector<Value> items, const char* name = "generator") {
  Value value = in.heap().list(std::move(items), ListKind::kGenerator);
  value.list().generator_name = name;
  return value;
}

// ---- attributes by path: "a.b.0"

std::vector<Value> attribute_path(Interpreter& in, const Value& attribute) {
  if (attribute.is(Type::kNone)) return {};
  if (!attribute.is(Type::kString)) return {attribute};
  std::vector<Value> parts;
  for (const auto part : split(attribute.str(), ".", -1)) {
    const bool is_number = has_class(part, TextClass::kDecimal) && part.size() < 18 &&
                           has_class(part, TextClass::kAscii);
    parts.push_back(is_number ? Value(static_cast<int64_t>(std::stoll(std::string(part))))
                              : in.heap().text(std::string(part)));
  }
  return parts;
}

// `fallback` stands in for what is undefined on the way; None leaves it.
Value follow(Interpreter& in, Value value, const std::vector<Value>& path,
             const Value& fallback = Value()) {
  for (const Value& part : path) {
    value = in.item(value, part);
    if (!fallback.is(Type::kNone) && value.is(Type::kUndefined)) value = fallback;
  }
  return value;
}

Value fold_case(Interpreter& in, const Value& value, bool case_sensitive) {
  if (case_sensitive || !value.is(Type::kString)) return value;
  return in.heap().text(lower(value.str()));
}

// ---- text

template <std::string (*kChange)(std::string_view)>
Value change_case(Interpreter& in, const Value& input, Arguments& arguments) {
  bind("case filter", arguments, {});
  const Value text = as_text(in, input);
  return text_like(in, text, kChange(text.str()));
}

// Words start behind white space, hyphens and opening brackets.
std::string title_words(std::string_view text) {
  std::string out;
  size_t word_start = 0;
  const auto flush = [&](size_t end) {
    const auto word = text.substr(word_start, end - word_start);
    if (word.empty()) return;
    size_t pos = 0;
    next_code_point(word, pos);
    out += upper(word.substr(0, pos));
    out += lower(word.substr(pos));
  };
  for (size_t pos = 0; pos < text.size();) {
    const size_t start = pos;
    const char32_t c = next_code_point(text, pos);
    if (!is_space(c) && c != '-' && c != '(' && c != '{' && c != '[' && c != '<') continue;
    flush(start);
    out += text.substr(start, pos - start);
    word_start = pos;
  }
  flush(text.size());
  return out;
}

Value filter_trim(Interpreter& in, const Value& input, Arguments& arguments) {
  const auto values = bind("trim", arguments, {{"chars", none()}});
  const Value text = as_text(in, input);
  std::optional<std::string_view> chars;
  if (!values[0].is(Type::kNone)) chars = text_of("trim", values[0]);
  return text_like(in, text, std::string(strip(text.str(), Side::kBoth, chars)));
}

Value filter_replace(Interpreter& in, const Value& input, Arguments& arguments) {
  const auto values = bind("replace", arguments, {{"old"}, {"new"}, {"count", none()}});
  const std::string text = to_text(input);
  const std::string from = to_text(values[0]);
  const std::string to = to_text(values[1]);
  const size_t growth = to.size() > from.size() ? to.size() - from.size() : 0;
  const int64_t times = growth > 0 ? count_substring(text, from) : 0;
  in.heap().check_text_size(text.size() + static_cast<size_t>(times) * growth);
  const int64_t count = values[2].is(Type::kNone) ? -1 : to_index(values[2]);
  return in.heap().text(replace(text, from, to, count));
}

Value filter_indent(Interpreter& in, const Value& input, Arguments& arguments) {
  const auto values = bind("indent", arguments,
                           {{"width", Value(4)}, {"first", Value(false)}, {"blank", Value(false)}});
  const std::string text = text_of("indent", input) + "\n";
  std::string indention;
  if (values[0].is(Type::kString)) {
    indention = values[0].str();
  } else {
    const int64_t width = std::max<int64_t>(0, to_index(values[0]));
    in.heap().check_text_size(static_cast<size_t>(width));
    indention = std::string(static_cast<size_t>(width), ' ');
  }
  const bool blank = truthy(values[2]);
  std::string out = truthy(values[1]) ? indention : "";
  bool first = true;
  for (const auto line : split_lines(text, false)) {
    if (!std::exchange(first, false)) {
      out += '\n';
      if (blank || !line.empty()) out += indention;
    }
    out += line;
    in.heap().check_text_size(out.size());
  }
  return text_like(in, input, std::move(out));
}

Value filter_center(Interpreter& in, const Value& input, Arguments& arguments) {
  const Value width = bind("center", arguments, {{"width", Value(80)}})[0];
  MethodObject method{as_text(in, input), "center"};
  Arguments call{{width}, {}};
  return call_method(in, method, call);
}

Value filter_string(Interpreter& in, const Value& input, Arguments& arguments) {
  bind("string", arguments, {});
  return as_text(in, input);
}

Value filter_safe(Interpreter& in, const Value& input, Arguments& arguments) {
  bind("safe", arguments, {});
  return in.heap().text(to_text(input), true);
}

Value filter_escape(Interpreter& in, const Value& input, Arguments& arguments) {
  bind("escape", arguments, {});
  if (input.is_markup()) return input;
  return in.heap().text(escape_html(to_text(input)), true);
}

Value filter_force_escape(Interpreter& in, const Value& input, Arguments& arguments) {
  bind("forceescape", arguments, {});
  return in.heap().text(escape_html(to_text(input)), true);
}

Value filter_format(Interpreter& in, const Value& input, Arguments& arguments) {
  const Value text = as_text(in, input);
  if (!arguments.positional.empty() && !arguments.keyword.empty()) {
    fail("format: can't handle positional and keyword arguments at the same time");
  }
  Value values = in.heap().list(arguments.positional, ListKind::kTuple);
  if (!arguments.keyword.empty()) {
    Arguments keywords{{}, arguments.keyword};
    values = make_dict(in, "format", keywords);
  }
  return text_like(in, text, percent_format(in.heap(), text.str(), values));
}

Value filter_wordcount(Interpreter& in, const Value& input, Arguments& arguments) {
  bind("wordcount", arguments, {});
  const std::string text = to_text(input);
  in.heap().touch_bytes(text.size());
  int64_t count = 0;
  bool in_word = false;
  for (size_t pos = 0; pos < text.size();) {
    const bool word = is_word(next_code_point(text, pos));
    if (word && !in_word) ++count;
    in_word = word;
  }
  return count;
}

Value filter_truncate(Interpreter& in, const Value& input, Arguments& arguments) {
  const auto values = bind("truncate", arguments,
                           {{"length", Value(255)},
                            {"killwords", Value(false)},
                            {"end", Value::constant("...")},
                            {"leeway", Value(5)}});
  // What is short enough passes as it is, whatever it is.
  if (!input.is(Type::kString) && length_of(input).value_or(INT64_MAX) <= to_index(values[0])) {
    return input;
  }
  const std::string& text = text_of("truncate", input);
  const std::string& end = text_of("truncate", values[2]);
  const int64_t length = to_index(values[0]);
  const int64_t leeway = to_index(values[3].is(Type::kNone) ? Value(5) : values[3]);
  const int64_t end_length = num_code_points(end);
  if (length < end_length) fail(fmt::format("expected length >= {}, got {}", end_length, length));
  if (leeway < 0) fail(fmt::format("expected leeway >= 0, got {}", leeway));
  if (num_code_points(text) <= length + leeway) return input;
  std::string kept = text.substr(0, byte_of(text, length - end_length));
  if (!truthy(values[1])) {
    if (const size_t space = kept.rfind(' '); space != std::string::npos) kept.resize(space);
  }
  return text_like(in, input, kept + end);
}

// Percent-encodes what is neither a letter, digit nor one of "_.-~/".
std::string url_quote(std::string_view text, bool keep_slash) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '.' || c == '-' || c == '~' || (keep_slash && c == '/');
    if (plain) {
      out += c;
    } else if (!keep_slash && c == ' ') {
      out += '+';
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

Value filter_urlencode(Interpreter& in, const Value& input, Arguments& arguments) {
  bind("urlencode", arguments, {});
  if (!is_iterable(input) || input.is(Type::kString))
    return in.heap().text(url_quote(to_text(input), true));
  std::string out;
  const auto add = [&](const Value& key, const Value& value) {
    if (!out.empty()) out += '&';
    out += url_quote(to_text(key), false) + "=" + url_quote(to_text(value), false);
  };
  if (input.is(Type::kDict)) {
    for (const auto& [key, value] : input.dict().entries) add(key, value);
  } else {
    for (const Value& pair : iterate(in.heap(), input)) {
      const auto items = iterate(in.heap(), pair);
      if (items.size() != 2) fail("urlencode: expected pairs");
      add(items[0], items[1]);
    }
  }
  return in.heap().text(std::move(out));
}

// ---- numbers

// Python's int(text, base), or nothing.
std::optional<Integer> parse_integer(std::string_view text, int base) {
  text = strip(text, Side::kBoth, std::nullopt);
  const bool negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  if (text.size() > 2 && text[0] == '0') {
    const char marker = static_cast<char>(text[1] | 0x20);
    const int named = marker == 'x' ? 16 : marker == 'o' ? 8 : marker == 'b' ? 2 : 0;
    if (named != 0 && (base == named || base == 0)) {
      base = named;
      text.remove_prefix(2);
    }
  }
  if (base == 0) base = 10;
  Integer value = 0;
  bool after_digit = false;
  for (const char c : text) {
    if (c == '_' && after_digit) {
      after_digit = false;
      continue;
    }
    const int digit = c >= '0' && c <= '9'                     ? c - '0'
                      : (c | 0x20) >= 'a' && (c | 0x20) <= 'z' ? (c | 0x20) - 'a' + 10
                                                               : 99;
    if (digit >= base) return std::nullopt;
    value = checked(checked_product(value, base) + digit);
    after_digit = true;
  }
  if (!after_digit) return std::nullopt;
  return negative ? -value : value;
}

// Python's float(text), or nothing.
std::optional<double> parse_float(std::string_view text) {
  std::string digits(strip(text, Side::kBoth, std::nullopt));
  for (size_t i = 0; i < digits.size(); ++i) {
    if (digits[i] != '_') continue;
    const bool between = i > 0 && i + 1 < digits.size() &&
                         std::isdigit(static_cast<unsigned char>(digits[i - 1])) != 0 &&
                         std::isdigit(static_cast<unsigned char>(digits[i + 1])) != 0;
    if (!between) return std::nullopt;
  }
  std::erase(digits, '_');
  std::string_view number = digits;
  if (number.size() > 1 && number[0] == '+' && number[1] != '-') number.remove_prefix(1);
  const size_t sign = !number.empty() && number[0] == '-' ? 1 : 0;
  if (number.size() > sign && (number[sign] | 0x20) == 'n' &&
      number.find('(') != std::string_view::npos) {
    return std::nullopt;
  }
  double value = 0;
  const auto result = std::from_chars(number.data(), number.data() + number.size(), value);
  if (number.empty() || result.ptr != number.data() + number.size()) return std::nullopt;
  if (result.ec == std::errc::result_out_of_range)
    return std::strtod(std::string(number).c_str(), nullptr);
  if (result.ec != std::errc()) return std::nullopt;
  return value;
}

Value filter_int(Interpreter&, const Value& input, Arguments& arguments) {
  const auto values = bind("int", arguments, {{"default", Value(0)}, {"base", Value(10)}});
  if (input.is(Type::kUndefined)) fail(input.str());
  if (input.is_integral()) return input.as_int();
  if (input.is(Type::kString)) {
    const int64_t base = to_index(values[1]);
    if (base == 0 || (base >= 2 && base <= 36)) {
      if (const auto value = parse_integer(input.str(), static_cast<int>(base))) return *value;
    }
  }
  std::optional<double> number;
  if (input.is(Type::kFloat)) number = input.as_float();
  if (input.is(Type::kString)) number = parse_float(input.str());
  if (!number || !std::isfinite(*number)) return values[0];
  return to_integer(*number);
}

Value filter_float(Interpreter&, const Value& input, Arguments& arguments) {
  const auto values = bind("float", arguments, {{"default", Value(0.0)}});
  if (input.is(Type::kUndefined)) fail(input.str());
  if (input.is_number()) return input.as_float();
  if (input.is(Type::kString)) {
    if (const auto value = parse_float(input.str())) return *value;
  }
  return values[0];
}

const Value& number_of(const char* filter, const Value& value) {
  if (value.is(Type::kUndefined)) fail(value.str());
  if (!value.is_number()) {
    fail(fmt::format("{}: expected a number, found {}", filter, type_name(value)));
  }
  return value;
}

Value filter_abs(Interpreter&, const Value& input, Arguments& arguments) {
  bind("abs", arguments, {});
  number_of("abs", input);
  if (input.is_integral()) return input.as_int() < 0 ? -input.as_int() : input.as_int();
  return std::fabs(input.as_float());
}

// round(integer, -n): to a multiple of 10^n, ties to the even multiple.
Value round_integer(Integer value, int64_t digits) {
  if (digits >= 0) return value;
  if (digits < -37) return 0;
  const Integer unit = power(Value(10), Value(-digits)).as_int();
  const Integer below = floor_div(value, unit);
  const Integer rest = value - below * unit;
  const bool up = rest * 2 > unit || (rest * 2 == unit && below % 2 != 0);
  return checked((below + (up ? 1 : 0)) * unit);
}

Value filter_round(Interpreter&, const Value& input, Arguments& arguments) {
  const auto values =
      bind("round", arguments, {{"precision", Value(0)}, {"method", Value::constant("common")}});
  number_of("round", input);
  const int64_t digits = to_index(values[0]);
  const std::string& method = text_of("round", values[1]);
  if (method == "common") {
    if (input.is_integral()) return round_integer(input.as_int(), digits);
    return round_to(input.as_float(), digits);
  }
  if (method != "ceil" && method != "floor") fail("method must be common, ceil or floor");
  const double unit = std::pow(10.0, static_cast<double>(digits));
  const double scaled = input.as_float() * unit;
  return (method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / unit;
}

// ---- sequences

Value filter_length(Interpreter&, const Value& input, Arguments& arguments) {
  bind("length", arguments, {});
  const auto length = length_of(input);
  if (!length) fail(fmt::format("object of type '{}' has no len()", type_name(input)));
  return *length;
}

Value filter_default(Interpreter&, const Value& input, Arguments& arguments) {
  const auto values = bind("default", arguments,
                           {{"default_value", Value::constant("")}, {"boolean", Value(false)}});
  return input.is(Type::kUndefined) || (truthy(values[1]) && !truthy(input)) ? values[0] : input;
}

Value filter_join(Interpreter& in, const Value& input, Arguments& arguments) {
  const auto values = bind("join", arguments, {{"d", Value::constant("")}, {"attribute", none()}});
  const std::string separator = to_text(values[0]);
  const auto path = attribute_path(in, values[1]);
  std::string out;
  bool first = true;
  for (const Value& item : iterate(in.heap(), input)) {
    if (!std::exchange(first, false)) out += separator;
    out += to_text(follow(in, item, path));
    in.heap().check_text_size(out.size());
  }
  return in.heap().text(std::move(out));
}

Value filter_first(Interpreter& in, const Value& input, Arguments& arguments) {
  bind("first", arguments, {});
  const bool is_generator = input.is(Type::kList) && input.list().kind == ListKind::kGenerator;
  if (is_generator && !input.list().consumed && !input.list().items.empty()) {
    // A generator goes on behind the item that it gave.
    auto& items = input.list().items;
    in.heap().step(static_cast<int64_t>(items.size()));
    Value value = items.front();
    items.erase(items.begin());
    return value;
  }
  if (const auto value = element(in.heap(), input, Value(0))) {
    return value->is_markup() && input.is(Type::kString) ? in.heap().text(value->str()) : *value;
  }
  const auto items = iterate(in.heap(), input);
  return items.empty() ? Value::undefined("No first item, sequence was empty.") : items.front();
}

void check_reversible(const Value& input) {
  const bool is_view = input.is(Type::kList) && input.list().kind != ListKind::kGenerator;
  if (input.is(Type::kString) || input.is(Type::kDict) || input.is(Type::kUndefined) || is_view) {
    return;
  }
  fail(fmt::format("'{}' object is not reversible", type_name(input)));
}

Value filter_last(Interpreter& in, const Value& input, Arguments& arguments) {
  bind("last", arguments, {});
  check_reversible(input);
  if (const auto value = element(in.heap(), input, Value(-1))) return *value;
  const auto items = iterate(in.heap(), input);
  return items.empty() ? Value::undefined("No last item, sequence was empty.") : items.back();
}

Value filter_list(Interpreter& in, const Value& input, Arguments& arguments) {
  bind("list", arguments, {});
  return in.heap().list(iterate(in.heap(), input));
}

Value filter_reverse(Interpreter& in, const Value& input, Arguments& arguments) {
  bind("reverse", arguments, {});
  if (input.is(Type::kString)) {
    const Value step(-1);
    return *slice(in.heap(), input, nullptr, nullptr, &step);
  }
  auto items = iterate(in.heap(), input);
  std::reverse(items.begin(), items.end());
  return generator(in, std::move(items), "list_reverseiterator");
}

Value filter_items(Interpreter& in, const Value& input, Arguments& arguments) {
  bind("items", arguments, {});
  std::vector<Value> items;
  if (!input.is(Type::kUndefined)) {
    if (!input.is(Type::kDict)) fail("Can only get item pairs from a mapping.");
    for (const auto& [key, value] : input.dict().entries) {
      items.push_back(in.heap().list({key, value}, ListKind::kTuple));
    }
  }
  return generator(in, std::move(items));
}

// Sorts items by keys made once each; the order of equal keys stays.
std::vector<Value> sorted_by(Interpreter& in, const std::vector<Value>& items,
                             const std::vector<Value>& keys, bool reverse) {
  std::vector<size_t> order(items.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  in.heap().step(static_cast<int64_t>(items.size()) * 16);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return reverse ? less_than(keys[b], keys[a]) : less_than(keys[a], keys[b]);
  });
  std::vector<Value> sorted;
  for (const size_t i : order) sorted.push_back(items[i]);
  return sorted;
}

Value filter_sort(Interpreter& in, const Value& input, Arguments& arguments) {
  const auto values =
      bind("sort", arguments,
           {{"reverse", Value(false)}, {"case_sensitive", Value(false)}, {"attribute", none()}});
  std::vector<std::vector<Value>> paths;
  if (values[2].is(Type::kString)) {
    for (const auto part : split(values[2].str(), ",", -1)) {
      paths.push_back(attribute_path(in, in.heap().text(std::string(part))));
    }
  } else {
    paths.push_back(attribute_path(in, values[2]));
  }
  const auto items = iterate(in.heap(), input);
  std::vector<Value> keys;
  for (const Value& item : items) {
    std::vector<Value> key;
    for (const auto& path : paths) {
      key.push_back(fold_case(in, follow(in, item, path), truthy(values[1])));
    }
    keys.push_back(in.heap().list(std::move(key)));
  }
  return in.heap().list(sorted_by(in, items, keys, truthy(values[0])));
}

Value filter_dictsort(Interpreter& in, const Value& input, Arguments& arguments) {
  const auto values = bind("dictsort", arguments,
                           {{"case_sensitive", Value(false)},
                            {"by", Value::constant("key")},
                            {"reverse", Value(false)}});
  const std::string& by = text_of("dictsort", values[1]);
  if (by != "key" && by != "value") fail("You can only sort by either \"key\" or \"value\"");
  if (input.is(Type::kUndefined)) fail(input.str());
  if (!input.is(Type::kDict))
    fail(fmt::format("dictsort: expected a dict, found {}", type_name(input)));
  std::vector<Value> items;
  std::vector<Value> keys;
  for (const auto& [key, value] : input.dict().entries) {
    items.push_back(in.heap().list({key, value}, ListKind::kTuple));
    keys.push_back(fold_case(in, by == "key" ? key : value, truthy(values[0])));
  }
  return in.heap().list(sorted_by(in, items, keys, truthy(values[2])));
}

Value filter_unique(Interpreter& in, const Value& input, Arguments& arguments) {
  const auto values =
      bind("unique", arguments, {{"case_sensitive", Value(false)}, {"attribute", none()}});
  const auto path = attribute_path(in, values[1]);
  DictObject* seen = in.heap().new_dict();
  std::vector<Value> items;
  for (const Value& item : iterate(in.heap(), input)) {
    const Value key = fold_case(in, follow(in, item, path), truthy(values[0]));
    if (seen->find(key) != nullptr) continue;
    in.heap().set(*seen, key, Value(true));
    items.push_back(item);
  }
  return generator(in, std::move(items));
}

template <bool kMax>
Value filter_extreme(Interpreter& in, const Value& input, Arguments& arguments) {
  const auto values = bind(kMax ? "max" : "min", arguments,
                           {{"case_sensitive", Value(false)}, {"attribute", none()}});
  const auto path = attribute_path(in, values[1]);
  std::optional<Value> best;
  Value best_key;
  for (const Value& item : iterate(in.heap(), input)) {
    const Value key = fold_case(in, follow(in, item, path), truthy(values[0]));
    const bool better = !best || (kMax ? less_than(best_key, key, ">") : less_than(key, best_key));
    if (!better) continue;
    best = item;
    best_key = key;
  }
  return best ? *best : Value::undefined("No aggregated item, sequence was empty.");
}

Value filter_sum(Interpreter& in, const Value& input, Arguments& arguments) {
  const auto values = bind("sum", arguments, {{"attribute", none()}, {"start", Value(0)}});
  if (values[1].is(Type::kString)) fail("sum() can't sum strings [use ''.join(seq) instead]");
  const auto path = attribute_path(in, values[0]);
  Value total = values[1];
  for (const Value& item : iterate(in.heap(), input)) {
    total = binary(in.heap(), BinaryOp::kAdd, total, follow(in, item, path));
  }
  return total;
}

Value filter_batch(Interpreter& in, const Value& input, Arguments& arguments) {
  const auto values = bind("batch", arguments, {{"linecount"}, {"fill_with", none()}});
  const int64_t size = to_index(values[0]);
  std::vector<Value> rows;
  std::vector<Value> row;
  for (const Value& item : iterate(in.heap(), input)) {
    if (static_cast<int64_t>(row.size()) == size)
      rows.push_back(in.heap().list(std::exchange(row, {})));
    row.push_back(item);
  }
  if (!row.empty()) {
    while (!values[1].is(Type::kNone) && static_cast<int64_t>(row.size()) < size) {
      in.heap().step();
      in.heap().charge(sizeof(Value));
      row.push_back(values[1]);
    }
    rows.push_back(in.heap().list(std::move(row)));
  }
  return generator(in, std::move(rows));
}

Value filter_slice(Interpreter& in, const Value& input, Arguments& arguments) {
  const auto values = bind("slice", arguments, {{"slices"}, {"fill_with", none()}});
  const auto items = iterate(in.heap(), input);
  const int64_t slices = to_index(values[0]);
  if (slices == 0) fail("integer division or modulo by zero");
  const auto size = static_cast<int64_t>(items.size());
  std::vector<Value> rows;
  for (int64_t i = 0, at = 0; i < slices; ++i) {
    in.heap().step();
    const int64_t count = size / slices + (i < size % slices ? 1 : 0);
    std::vector<Value> row(items.begin() + at, items.begin() + at + count);
    at += count;
    if (!values[1].is(Type::kNone) && i >= size % slices) row.push_back(values[1]);
    rows.push_back(in.heap().list(std::move(row)));
  }
  return generator(in, std::move(rows));
}

Value filter_groupby(Interpreter& in, const Value& input, Arguments& arguments) {
  const auto values = bind("groupby", arguments,
                           {{"attribute"}, {"default", none()}, {"case_sensitive", Value(false)}});
  const auto path = attribute_path(in, values[0]);
  const bool case_sensitive = truthy(values[2]);
  const auto key_of = [&](const Value& item) {
    return fold_case(in, follow(in, item, path, values[1]), case_sensitive);
  };
  const auto items = iterate(in.heap(), input);
  std::vector<Value> keys;
  for (const Value& item : items) keys.push_back(key_of(item));
  std::vector<Value> groups;
  Value last_key;
  for (const Value& item : sorted_by(in, items, keys, false)) {
    const Value key = key_of(item);
    if (groups.empty() || !equals(key, last_key)) {
      const Value shown = case_sensitive ? key : follow(in, item, path, values[1]);
      groups.push_back(in.heap().list({shown, Value(in.heap().new_list())}, ListKind::kGroup));
      last_key = key;
    }
    in.heap().append(groups.back().list().items[1].list(), item);
  }
  return in.heap().list(std::move(groups));
}

// ---- map, select and their kin

Value filter_map(Interpreter& in, const Value& input, Arguments& arguments) {
  std::vector<Value> items;
  if (arguments.positional.empty()) {
    if (!truthy(input)) return generator(in, {});
    const auto values = bind("map", arguments, {{"attribute"}, {"default", none()}});
    const auto path = attribute_path(in, values[0]);
    for (const Value& item : iterate(in.heap(), input))
      items.push_back(follow(in, item, path, values[1]));
    return generator(in, std::move(items));
  }
  if (!truthy(input)) return generator(in, {});
  const std::string name = text_of("map", arguments.positional[0]);
  const Arguments rest{{arguments.positional.begin() + 1, arguments.positional.end()},
                       arguments.keyword};
  for (const Value& item : iterate(in.heap(), input)) {
    Arguments call = rest;
    items.push_back(in.call_filter(name, item, call));
  }
  return generator(in, std::move(items));
}

// select, reject, selectattr, rejectattr
template <bool kKeep, bool kByAttribute>
Value filter_select(Interpreter& in, const Value& input, Arguments& arguments) {
  if (!truthy(input)) return generator(in, {});
  size_t next = 0;
  std::vector<Value> path;
  if (kByAttribute) {
    if (arguments.positional.empty()) fail("Missing parameter for attribute name");
    path = attribute_path(in, arguments.positional[next++]);
  }
  std::optional<std::string> test;
  if (next < arguments.positional.size()) test = text_of("select", arguments.positional[next++]);
  const Arguments rest{{arguments.positional.begin() + static_cast<std::ptrdiff_t>(next),
                        arguments.positional.end()},
                       arguments.keyword};
  std::vector<Value> items;
  for (const Value& item : iterate(in.heap(), input)) {
    const Value subject = follow(in, item, path);
    Arguments call = rest;
    const bool passed = test ? in.call_test(*test, subject, call) : truthy(subject);
    if (passed == kKeep) items.push_back(item);
  }
  return generator(in, std::move(items));
}

// ---- others

Value filter_attr(Interpreter& in, const Value& input, Arguments& arguments) {
  const auto values = bind("attr", arguments, {{"name"}});
  const std::string& name = text_of("attr", values[0]);
  // Unlike a dot, this never falls back to the items of a dict.
  if (input.is(Type::kDict) && !has_method(input, name)) {
    return Value::undefined(fmt::format("'dict object' has no attribute '{}'", name));
  }
  return in.attribute(input, name);
}

Value filter_tojson(Interpreter& in, const Value& input, Arguments& arguments) {
  const auto values = bind("tojson", arguments,
                           {{"ensure_ascii", Value(false)},
                            {"indent", none()},
                            {"separators", none()},
                            {"sort_keys", Value(false)}});
  JsonStyle style;
  style.ensure_ascii = truthy(values[0]);
  style.sort_keys = truthy(values[3]);
  if (values[1].is(Type::kString)) {
    style.indent = values[1].str();
  } else if (!values[1].is(Type::kNone)) {
    const int64_t width = std::max<int64_t>(0, to_index(values[1]));
    in.heap().check_text_size(static_cast<size_t>(width));
    style.indent = std::string(static_cast<size_t>(width), ' ');
  }
  if (style.indent) style.item_separator = ",";
  if (!values[2].is(Type::kNone)) {
    const auto separators = iterate(in.heap(), values[2]);
    if (separators.size() != 2) fail("tojson: separators must be a pair");
    style.item_separator = text_of("tojson", separators[0]);
    style.key_separator = text_of("tojson", separators[1]);
  }
  return in.heap().text(to_json(in.heap(), input, style));
}

constexpr struct {
  std::string_view name;
  Filter filter;
} kFilters[] = {
    {"abs", filter_abs},
    {"attr", filter_attr},
    {"batch", filter_batch},
    {"capitalize", change_case<capitalize>},
    {"center", filter_center},
    {"count", filter_length},
    {"d", filter_default},
    {"default", filter_default},
    {"dictsort", filter_dictsort},
    {"e", filter_escape},
    {"escape", filter_escape},
    {"first", filter_first},
    {"float", filter_float},
    {"forceescape", filter_force_escape},
    {"format", filter_format},
    {"groupby", filter_groupby},
    {"indent", filter_indent},
    {"int", filter_int},
    {"items", filter_items},
    {"join", filter_join},
    {"last", filter_last},
    {"length", filter_length},
    {"list", filter_list},
    {"lower", change_case<lower>},
    {"map", filter_map},
    {"max", filter_extreme<true>},
    {"min", filter_extreme<false>},
    {"reject", filter_select<false, false>},
    {"rejectattr", filter_select<false, true>},
    {"replace", filter_replace},
    {"reverse", filter_reverse},
    {"round", filter_round},
    {"safe", filter_safe},
    {"select", filter_select<true, false>},
    {"selectattr", filter_select<true, true>},
    {"slice", filter_slice},
    {"sort", filter_sort},
    {"string", filter_string},
    {"sum", filter_sum},
    {"title", change_case<title_words>},
    {"tojson", filter_tojson},
    {"trim", filter_trim},
    {"truncate", filter_truncate},
    {"unique", filter_unique},
    {"upper", change_case<upper>},
    {"urlencode", filter_urlencode},
    {"wordcount", filter_wordcount},
};

}  // namespace

Filter find_filter(std::string_view name) {
  for (const auto& entry : kFilters) {
    if (entry.name == name) return entry.filter;
  }
  return nullptr;
}

}  // namespace minisgl::jinja
