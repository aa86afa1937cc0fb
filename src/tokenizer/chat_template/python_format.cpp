#include "tokenizer/chat_template/python_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "tokenizer/chat_template/operators.h"
#include "tokenizer/chat_template/python_text.h"

namespace minisgl::jinja {
namespace {

constexpr int64_t kMaxPrecision = 500;  // digits behind the point; a double has no more to say
constexpr int kMaxNesting = 3;          // of fields inside a format specification

struct Spec {
  std::string fill = " ";
  char align = 0;  // < > ^ =
  char sign = '-';
  bool alternate = false;
  int64_t width = 0;
  char grouping = 0;
  int64_t precision = -1;
  char type = 0;
};

// Digits at `pos`, or -1. Clamped: widths are checked against the limits before use.
int64_t take_number(std::string_view text, size_t& pos) {
  if (pos >= text.size() || text[pos] < '0' || text[pos] > '9') return -1;
  int64_t value = 0;
  for (; pos < text.size() && text[pos] >= '0' && text[pos] <= '9'; ++pos) {
    value = std::min<int64_t>(value * 10 + (text[pos] - '0'), int64_t{1} << 40);
  }
  return value;
}

std::string pad(Heap& heap, std::string text, int64_t width, char align, std::string_view fill) {
  const int64_t missing = width - num_code_points(text);
  if (missing <= 0) return text;
  heap.check_text_size(text.size() + static_cast<size_t>(missing) * fill.size());
  const auto fills = [&](int64_t count) {
    std::string out;
    for (int64_t i = 0; i < count; ++i) out += fill;
    return out;
  };
  if (align == '>') return fills(missing) + text;
  if (align == '^') return fills(missing / 2) + text + fills(missing - missing / 2);
  return text + fills(missing);
}

// Zeros or another fill between the sign and the digits.
std::string pad_number(Heap& heap, const std::string& sign, const std::string& digits,
                       const Spec& spec) {
  if (spec.align != '=') {
    return pad(heap, sign + digits, spec.width, spec.align == 0 ? '>' : spec.align, spec.fill);
  }
  const int64_t width = spec.width - static_cast<int64_t>(sign.size());
  return sign + pad(heap, digits, width, '>', spec.fill);
}

std::string sign_of(bool negative, char sign) {
  if (negative) return "-";
  return sign == '+' ? "+" : sign == ' ' ? " " : "";
}

std::string group_digits(const std::string& digits, char separator, size_t size) {
  const size_t end = std::min(digits.find_first_of(".e"), digits.size());
  std::string out;
  for (size_t i = 0; i < end; ++i) {
    if (i > 0 && (end - i) % size == 0) out += separator;
    out += digits[i];
  }
  return out + digits.substr(end);
}

std::string digits_in_base(Integer value, int base, bool upper_case) {
  std::string digits;
  do {
    const int digit = static_cast<int>(value % base);
    digits += static_cast<char>(digit < 10 ? '0' + digit : (upper_case ? 'A' : 'a') + digit - 10);
    value /= base;
  } while (value > 0);
  std::reverse(digits.begin(), digits.end());
  return digits;
}

std::string printf_float(double value, char type, int64_t precision, bool alternate) {
  if (precision > kMaxPrecision) fail("format specifier has too large a precision");
  const bool upper_case = type == 'F' || type == 'E' || type == 'G';
  if (!std::isfinite(value)) {
    const std::string name = std::isnan(value) ? "nan" : "inf";
    return upper_case ? upper(name) : name;
  }
  const std::string pattern = (alternate ? "%#.*" : "%.*") + std::string(1, type);
  char buffer[1200];
  const int length =
      std::snprintf(buffer, sizeof(buffer), pattern.c_str(), static_cast<int>(precision), value);
  return std::string(buffer, static_cast<size_t>(length));
}

std::string float_digits(double magnitude, const Spec& spec) {
  const int64_t precision = spec.precision < 0 ? 6 : spec.precision;
  if (spec.type == '%') return printf_float(magnitude * 100, 'f', precision, spec.alternate) + "%";
  if (spec.type == 0 && spec.precision < 0) return float_text(magnitude);
  if (spec.type == 0) {
    // Like 'g', but a number without exponent keeps a digit behind its point.
    std::string digits = printf_float(magnitude, 'g', std::max<int64_t>(precision, 1), false);
    if (digits.find_first_of(".en") == std::string::npos) digits += ".0";
    return digits;
  }
  const char type = spec.type == 'n' ? 'g' : spec.type;
  return printf_float(magnitude, type, precision, spec.alternate);
}

std::string format_float(Heap& heap, double value, Spec spec) {
  const bool negative = std::signbit(value) && !std::isnan(value);
  std::string digits = float_digits(std::fabs(value), spec);
  if (spec.grouping != 0) digits = group_digits(digits, spec.grouping, 3);
  return pad_number(heap, sign_of(negative, spec.sign), digits, spec);
}

std::string format_integer(Heap& heap, Integer value, const Spec& spec) {
  if (spec.precision >= 0) fail("Precision not allowed in integer format specifier");
  const Integer magnitude = value < 0 ? -value : value;
  std::string digits;
  std::string prefix;
  switch (spec.type) {
    case 'b':
      digits = digits_in_base(magnitude, 2, false);
      prefix = "0b";
      break;
    case 'o':
      digits = digits_in_base(magnitude, 8, false);
      prefix = "0o";
      break;
    case 'x':
    case 'X':
      digits = digits_in_base(magnitude, 16, spec.type == 'X');
      prefix = spec.type == 'x' ? "0x" : "0X";
      break;
    case 'c':
      if (value < 0 || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) {
        fail("%c arg not in range(0x110000)");
      }
      append_code_point(digits, static_cast<char32_t>(value));
      return pad(heap, digits, spec.width, spec.align == 0 ? '<' : spec.align, spec.fill);
    default:
      digits = integer_text(magnitude);
  }
  const bool decimal = prefix.empty();
  if (spec.grouping != 0) digits = group_digits(digits, spec.grouping, decimal ? 3 : 4);
  return pad_number(heap, sign_of(value < 0, spec.sign) + (spec.alternate ? prefix : ""), digits,
                    spec);
}

std::string truncated(std::string text, int64_t precision) {
  if (precision >= 0) text.resize(byte_of(text, precision));
  return text;
}

bool is_align(char c) { return c == '<' || c == '>' || c == '^' || c == '='; }

Spec parse_spec(std::string_view text) {
  Spec spec;
  size_t pos = 0;
  size_t behind_fill = 0;
  if (!text.empty()) next_code_point(text, behind_fill);
  if (behind_fill < text.size() && is_align(text[behind_fill])) {
    spec.fill = std::string(text.substr(0, behind_fill));
    spec.align = text[behind_fill];
    pos = behind_fill + 1;
  } else if (!text.empty() && is_align(text[0])) {
    spec.align = text[0];
    pos = 1;
  }
  const auto at = [&](std::string_view any) {
    return pos < text.size() && any.find(text[pos]) != std::string_view::npos;
  };
  if (at("+- ")) spec.sign = text[pos++];
  if (at("#")) spec.alternate = text[pos++] == '#';
  if (at("0")) {
    ++pos;
    if (spec.align == 0) {
      spec.align = '=';
      spec.fill.assign(1, '0');
    }
  }
  spec.width = std::max<int64_t>(0, take_number(text, pos));
  if (at(",_")) spec.grouping = text[pos++];
  if (at(".")) {
    ++pos;
    spec.precision = take_number(text, pos);
    if (spec.precision < 0) fail("Format specifier missing precision");
  }
  if (pos < text.size()) spec.type = text[pos++];
  if (pos < text.size()) fail(fmt::format("Invalid format specifier '{}'", text));
  return spec;
}

std::string format_value(Heap& heap, const Value& value, std::string_view spec_text) {
  if (value.is(Type::kUndefined) && !spec_text.empty()) {
    fail("unsupported format string passed to Undefined.__format__");
  }
  if (spec_text.empty()) return to_text(value);
  Spec spec = parse_spec(spec_text);
  const auto type_is = [&](std::string_view types) {
    return spec.type == 0 || types.find(spec.type) != std::string_view::npos;
  };
  const auto unknown = [&]() {
    fail(fmt::format("Unknown format code '{}' for object of type '{}'", spec.type,
                     type_name(value)));
  };
  if (value.is(Type::kString)) {
    if (!type_is("s")) unknown();
    if (spec.align == '=' && spec.fill != "0")
      fail("'=' alignment not allowed in string format specifier");
    const char align = spec.align == 0 || spec.align == '=' ? '<' : spec.align;
    return pad(heap, truncated(value.str(), spec.precision), spec.width, align, spec.fill);
  }
  if (value.is_integral() && type_is("bcdoxXn")) return format_integer(heap, value.as_int(), spec);
  if (value.is_number()) {
    if (!type_is("eEfFgGn%")) unknown();
    return format_float(heap, value.as_float(), spec);
  }
  fail(fmt::format("unsupported format string passed to {}.__format__", type_name(value)));
}

// "…" % arguments: one walk over the text, taking arguments as conversions ask for them.
class PercentFormatter {
 public:
  PercentFormatter(Heap& heap, std::string_view text, const Value& arguments)
      : heap_(heap), text_(text), arguments_(arguments) {
    is_tuple_ = arguments.is(Type::kList) && (arguments.list().kind == ListKind::kTuple ||
                                              arguments.list().kind == ListKind::kGroup);
  }

  std::string run() {
    while (pos_ < text_.size()) {
      const size_t percent = std::min(text_.find('%', pos_), text_.size());
      out_ += text_.substr(pos_, percent - pos_);
      pos_ = percent + 1;
      if (percent < text_.size()) conversion();
      heap_.check_text_size(out_.size());
    }
    const bool all_used = is_tuple_ ? next_ == arguments_.list().items.size()
                                    : next_ > 0 || mapped_ || arguments_.is(Type::kDict) ||
                                          arguments_.is(Type::kUndefined) ||
                                          (arguments_.is(Type::kList) && !is_tuple_);
    if (!all_used) fail("not all arguments converted during string formatting");
    return std::move(out_);
  }

 private:
  Value next_argument() {
    if (is_tuple_) {
      if (next_ >= arguments_.list().items.size()) fail("not enough arguments for format string");
      return arguments_.list().items[next_++];
    }
    if (next_++ > 0) fail("not enough arguments for format string");
    return arguments_;
  }

  Value mapped_argument() {
    const size_t end = text_.find(')', pos_);
    if (end == std::string_view::npos) fail("incomplete format key");
    const auto key = text_.substr(pos_, end - pos_);
    pos_ = end + 1;
    mapped_ = true;
    if (!arguments_.is(Type::kDict)) fail("format requires a mapping");
    const Value* value = arguments_.dict().find(key);
    if (value == nullptr) fail(fmt::format("'{}'", key));
    return *value;
  }

  int64_t take_width() {
    if (pos_ < text_.size() && text_[pos_] == '*') {
      ++pos_;
      return to_index(next_argument());
    }
    return take_number(text_, pos_);
  }

  void conversion() {
    std::optional<Value> value;
    if (pos_ < text_.size() && text_[pos_] == '(') {
      ++pos_;
      value = mapped_argument();
    }
    Spec spec;
    for (; pos_ < text_.size() &&
           std::string_view("-+ #0").find(text_[pos_]) != std::string_view::npos;
         ++pos_) {
      flag(spec, text_[pos_]);
    }
    spec.width = take_width();
    if (spec.width < -1) spec.align = '<';
    spec.width = std::abs(spec.width == -1 ? 0 : spec.width);
    if (pos_ < text_.size() && text_[pos_] == '.') {
      ++pos_;
      spec.precision = std::max<int64_t>(0, take_width());
    }
    while (pos_ < text_.size() &&
           std::string_view("hlL").find(text_[pos_]) != std::string_view::npos) {
      ++pos_;
    }
    if (pos_ >= text_.size()) fail("incomplete format");
    spec.type = text_[pos_++];
    if (spec.type == '%') {
      out_ += '%';
      return;
    }
    out_ += convert(spec, value ? *value : next_argument());
  }

  static void flag(Spec& spec, char c) {
    if (c == '-') spec.align = '<';
    if (c == '+') spec.sign = '+';
    if (c == ' ' && spec.sign != '+') spec.sign = ' ';
    if (c == '#') spec.alternate = true;
    if (c == '0') spec.fill.assign(1, '0');
  }

  std::string convert(Spec spec, const Value& value) {
    const char align = spec.align == '<' ? '<' : '>';
    switch (spec.type) {
      case 's':
      case 'r':
      case 'a':
        return pad(heap_,
                   truncated(spec.type == 's' ? to_text(value) : to_repr(value), spec.precision),
                   spec.width, align, " ");
      case 'c':
        return pad(heap_, character(value), spec.width, align, " ");
      default:
        return convert_number(spec, value);
    }
  }

  std::string character(const Value& value) {
    if (value.is(Type::kString) && num_code_points(value.str()) == 1) return value.str();
    if (!value.is_integral()) fail("%c requires int or char");
    Spec spec;
    spec.type = 'c';
    return format_integer(heap_, value.as_int(), spec);
  }

  std::string convert_number(Spec spec, const Value& value) {
    if (value.is(Type::kUndefined)) fail(value.str());
    const bool is_float = std::string_view("eEfFgG").find(spec.type) != std::string_view::npos;
    const bool is_integer = std::string_view("diuxXo").find(spec.type) != std::string_view::npos;
    if (!is_float && !is_integer) fail(fmt::format("unsupported format character '{}'", spec.type));
    if (!value.is_number()) {
      fail(fmt::format("%{} format: a number is required, not {}", spec.type, type_name(value)));
    }
    const bool decimal = spec.type == 'd' || spec.type == 'i' || spec.type == 'u';
    if (!is_float && !decimal && !value.is_integral()) {
      fail(fmt::format("%{} format: an integer is required, not float", spec.type));
    }
    spec.align = spec.align == '<' ? '<' : spec.fill == "0" ? '=' : '>';
    if (spec.align == '<') spec.fill.assign(1, ' ');
    if (is_float) return format_float(heap_, value.as_float(), spec);
    const Integer integer = value.is_integral() ? value.as_int() : to_integer(value.as_float());
    return convert_integer(spec, integer, decimal);
  }

  // A precision is the least number of digits here.
  std::string convert_integer(Spec spec, Integer integer, bool decimal) {
    const int64_t least = std::exchange(spec.precision, -1);
    if (decimal) spec.type = 'd';
    if (least <= 0) return format_integer(heap_, integer, spec);
    const int64_t width = std::exchange(spec.width, 0);
    std::string text = format_integer(heap_, integer, spec);
    const std::string sign =
        text[0] == '-' || text[0] == '+' || text[0] == ' ' ? text.substr(0, 1) : "";
    text = sign + pad(heap_, text.substr(sign.size()), least, '>', "0");
    return pad(heap_, std::move(text), width, spec.align == '<' ? '<' : '>', " ");
  }

  Heap& heap_;
  std::string_view text_;
  const Value& arguments_;
  bool is_tuple_ = false;
  bool mapped_ = false;
  size_t pos_ = 0;
  size_t next_ = 0;
  std::string out_;
};

// "…".format(…)
class FieldFormatter {
 public:
  FieldFormatter(Heap& heap, const Arguments& arguments, const FieldAccess& access)
      : heap_(heap), arguments_(arguments), access_(access) {}

  std::string run(std::string_view text, int depth) {
    if (depth > kMaxNesting) fail("Max string recursion exceeded");
    std::string out;
    for (size_t pos = 0; pos < text.size();) {
      const char c = text[pos++];
      if (c != '{' && c != '}') {
        out += c;
      } else if (pos < text.size() && text[pos] == c) {
        out += c;
        ++pos;
      } else if (c == '}') {
        fail("Single '}' encountered in format string");
      } else {
        out += field(text, pos, depth);
        heap_.check_text_size(out.size());
      }
    }
    return out;
  }

 private:
  // The text of a field up to its closing brace, which `pos` moves behind.
  static std::string_view field_text(std::string_view text, size_t& pos) {
    const size_t start = pos;
    for (int open = 1; pos < text.size(); ++pos) {
      if (text[pos] == '{') ++open;
      if (text[pos] == '}' && --open == 0) return text.substr(start, pos++ - start);
    }
    fail(start == text.size() ? "Single '{' encountered in format string"
                              : "expected '}' before end of string");
  }

  std::string field(std::string_view text, size_t& pos, int depth) {
    std::string_view body = field_text(text, pos);
    std::string_view spec;
    const size_t name_end = std::min(body.find_first_of(":!", end_of_brackets(body)), body.size());
    const auto name = body.substr(0, name_end);
    std::string_view rest = body.substr(name_end);
    char conversion = 0;
    if (!rest.empty() && rest[0] == '!') {
      if (rest.size() < 2 || (rest.size() > 2 && rest[2] != ':'))
        fail("expected ':' after conversion specifier");
      conversion = rest[1];
      rest.remove_prefix(2);
    }
    if (!rest.empty()) spec = rest.substr(1);
    Value value = lookup(name);
    if (conversion == 's') value = heap_.text(to_text(value));
    if (conversion == 'r' || conversion == 'a') value = heap_.text(to_repr(value));
    return format_value(heap_, value, run(spec, depth + 1));
  }

  // ':' and '!' inside of brackets belong to the name.
  static size_t end_of_brackets(std::string_view body) {
    const size_t colon = std::min(body.find(':'), body.size());
    const size_t bracket = body.find('[');
    if (bracket == std::string_view::npos || bracket > colon) return 0;
    return std::min(body.find(']', bracket), body.size());
  }

  static bool is_number(std::string_view text) {
    return !text.empty() && text.size() < 10 &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  }

  Value positional(size_t index) const {
    if (index >= arguments_.positional.size()) {
      fail(fmt::format("Replacement index {} out of range for positional args tuple", index));
    }
    return arguments_.positional[index];
  }

  Value first(std::string_view name) {
    if (name.empty()) return positional(next_++);
    if (is_number(name)) return positional(static_cast<size_t>(std::stoul(std::string(name))));
    for (const auto& [key, value] : arguments_.keyword) {
      if (key == name) return value;
    }
    fail(fmt::format("'{}'", name));
  }

  Value lookup(std::string_view name) {
    size_t end = std::min(name.find_first_of(".["), name.size());
    Value value = first(name.substr(0, end));
    while (end < name.size()) {
      const size_t start = end + 1;
      if (name[end] == '.') {
        end = std::min(name.find_first_of(".[", start), name.size());
        value = access_.attribute(value, std::string(name.substr(start, end - start)));
        continue;
      }
      const size_t close = name.find(']', start);
      if (close == std::string_view::npos) fail("Missing ']' in format string");
      const auto key = name.substr(start, close - start);
      value = access_.item(value, is_number(key)
                                      ? Value(static_cast<int64_t>(std::stoll(std::string(key))))
                                      : Value::constant(std::string(key)));
      end = close + 1;
      if (end < name.size() && name[end] != '.' && name[end] != '[') {
        fail("Only '.' or '[' may follow ']' in format field specifier");
      }
    }
    return value;
  }

  Heap& heap_;
  const Arguments& arguments_;
  const FieldAccess& access_;
  size_t next_ = 0;
};

}  // namespace

std::string percent_format(Heap& heap, std::string_view text, const Value& arguments) {
  return PercentFormatter(heap, text, arguments).run();
}

std::string format_method(Heap& heap, std::string_view text, const Arguments& arguments,
                          const FieldAccess& access) {
  return FieldFormatter(heap, arguments, access).run(text, 0);
}

double round_to(double value, int64_t digits) {
  if (!std::isfinite(value) || digits > 330) return value;
  if (digits >= 0) {
    char buffer[700];
    std::snprintf(buffer, sizeof(buffer), "%.*f", static_cast<int>(digits), value);
    return std::strtod(buffer, nullptr);
  }
  if (digits < -310) return std::copysign(0.0, value);
  const double unit = std::pow(10.0, static_cast<double>(-digits));
  return std::nearbyint(value / unit) * unit;
}

}  // namespace minisgl::jinja
