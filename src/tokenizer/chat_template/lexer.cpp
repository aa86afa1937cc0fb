#include "tokenizer/chat_template/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "tokenizer/chat_template/python_text.h"
#include "utils/error.h"

namespace minisgl::jinja {
namespace {

// "\r\n" and "\r" become "\n"; one newline at the very end goes.
std::string normalize_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
    } else if (out += '\n'; i + 1 < source.size() && source[i + 1] == '\n') {
      ++i;
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(normalize_newlines(source)), text_(source_) {}

  std::vector<Token> run() {
    while (pos_ < text_.size()) lex_data();
    add(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail_here(const std::string& message) {
    throw_template_error(ErrorKind::kInvalidArgument, line_at(pos_), message);
  }

  // Lines are counted as the lexer moves on, so each byte is looked at once.
  int line_at(size_t pos) {
    pos = std::min(pos, text_.size());
    if (pos < counted_to_) {
      line_ -= static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(pos),
                                           text_.begin() + static_cast<std::ptrdiff_t>(counted_to_),
                                           '\n'));
    } else {
      line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(counted_to_),
                                           text_.begin() + static_cast<std::ptrdiff_t>(pos), '\n'));
    }
    counted_to_ = pos;
    return line_;
  }

  void add(TokenKind kind, std::string text, size_t at = std::string_view::npos) {
    tokens_.push_back(
        {kind, line_at(at == std::string_view::npos ? pos_ : at), std::move(text), {}});
  }

  bool at(std::string_view what) const { return text_.substr(pos_, what.size()) == what; }

  void skip_space() {
    while (pos_ < text_.size()) {
      size_t next = pos_;
      if (!is_space(next_code_point(text_, next))) return;
      pos_ = next;
    }
  }

  // "-" or "+" right behind an opening tag, or nothing.
  char take_sign() {
    if (pos_ < text_.size() && (text_[pos_] == '-' || text_[pos_] == '+')) return text_[pos_++];
    return 0;
  }

  // White space before a tag: "-" takes all of it, else what stands alone before a block on its
  // line goes (lstrip_blocks), unless the sign is "+" or the tag prints.
  std::string_view strip_before_tag(std::string_view data, char sign, bool prints) const {
    if (sign == '-') return strip(data, Side::kRight, std::nullopt);
    if (sign == '+' || prints) return data;
    const size_t newline = data.rfind('\n');
    const size_t line_start = newline == std::string_view::npos ? 0 : newline + 1;
    if (line_start == 0 && !line_starting_) return data;
    const auto rest = data.substr(line_start);
    return strip(rest, Side::kLeft, std::nullopt).empty() ? data.substr(0, line_start) : data;
  }

  void add_data(std::string_view data, size_t start) {
    if (!data.empty()) add(TokenKind::kData, std::string(data), start);
  }

  // The end of a block or comment, with what trim_blocks and "-" take behind it. False: not here.
  bool take_end(std::string_view closing) {
    const size_t start = pos_;
    const char sign = take_sign();
    if (!at(closing)) {
      pos_ = start;
      return false;
    }
    pos_ += closing.size();
    if (sign == '-') {
      skip_space();
    } else if (sign == 0 && pos_ < text_.size() && text_[pos_] == '\n') {
      ++pos_;
    }
    line_starting_ = text_[pos_ - 1] == '\n';
    return true;
  }

  void lex_data() {
    const size_t start = pos_;
    size_t tag = text_.find('{', pos_);
    while (tag != std::string_view::npos &&
           (tag + 1 >= text_.size() ||
            (text_[tag + 1] != '%' && text_[tag + 1] != '{' && text_[tag + 1] != '#'))) {
      tag = text_.find('{', tag + 1);
    }
    if (tag == std::string_view::npos) {
      add_data(text_.substr(start), start);
      pos_ = text_.size();
      return;
    }
    pos_ = tag;
    if (lex_raw(start)) return;
    const char kind = text_[tag + 1];
    pos_ = tag + 2;
    const char sign = take_sign();
    add_data(strip_before_tag(text_.substr(start, tag - start), sign, kind == '{'), start);
    line_starting_ = false;
    if (kind == '#') {
      lex_comment(tag);
    } else {
      lex_expression(tag, kind == '{');
    }
  }

  void lex_comment(size_t tag) {
    for (;; ++pos_) {
      const size_t end = text_.find('#', pos_);
      if (end == std::string_view::npos || end + 1 >= text_.size()) {
        pos_ = tag;
        fail_here("a comment is not closed: expected '#}'");
      }
      if (text_[end + 1] != '}') {
        pos_ = end;
        continue;
      }
      const bool signed_end = end > pos_ && (text_[end - 1] == '-' || text_[end - 1] == '+');
      pos_ = signed_end ? end - 1 : end;
      take_end("#}");
      return;
    }
  }

  // {% raw %} … {% endraw %}: everything between is data.
  bool lex_raw(size_t data_start) {
    const size_t tag = pos_;
    if (!at("{%")) return false;
    pos_ += 2;
    const char sign = take_sign();
    skip_space();
    const bool named = at("raw");
    if (named) pos_ += 3;
    skip_space();
    const bool dash = at("-%}");
    if (!named || (!dash && !at("%}"))) {
      pos_ = tag;
      return false;
    }
    add_data(strip_before_tag(text_.substr(data_start, tag - data_start), sign, false), data_start);
    pos_ += dash ? 3 : 2;
    if (dash) skip_space();
    line_starting_ = text_[pos_ - 1] == '\n';
    find_endraw(tag);
    return true;
  }

  void find_endraw(size_t raw_tag) {
    const size_t start = pos_;
    for (size_t tag = text_.find("{%", start); tag != std::string_view::npos;
         tag = text_.find("{%", tag + 1)) {
      pos_ = tag + 2;
      const char sign = take_sign();
      skip_space();
      if (!at("endraw")) continue;
      pos_ += 6;
      skip_space();
      const bool starting = line_starting_;
      if (!take_end("%}")) continue;
      const bool ends_line = line_starting_;
      line_starting_ = starting;
      add_data(strip_before_tag(text_.substr(start, tag - start), sign, false), start);
      line_starting_ = ends_line;
      return;
    }
    pos_ = raw_tag;
    fail_here("a raw block is not closed: expected '{% endraw %}'");
  }

  bool take_variable_end() {
    const bool dash = at("-}}");
    if (!dash && !at("}}")) return false;
    pos_ += dash ? 3 : 2;
    if (dash) skip_space();
    line_starting_ = text_[pos_ - 1] == '\n';
    return true;
  }

  void lex_expression(size_t tag, bool prints) {
    add(prints ? TokenKind::kVariableBegin : TokenKind::kBlockBegin, prints ? "{{" : "{%", tag);
    std::string open;  // the closing brackets that are due
    while (true) {
      const size_t start = pos_;
      if (open.empty() && (prints ? take_variable_end() : take_end("%}"))) {
        add(prints ? TokenKind::kVariableEnd : TokenKind::kBlockEnd, prints ? "}}" : "%}", start);
        return;
      }
      skip_space();
      if (pos_ > start) continue;
      if (pos_ >= text_.size()) {
        pos_ = tag;
        fail_here(fmt::format("a tag is not closed: expected '{}'", prints ? "}}" : "%}"));
      }
      lex_token(open);
    }
  }

  void lex_token(std::string& open) {
    const char c = text_[pos_];
    if (is_ascii_digit(c)) return lex_number();
    if (c == '\'' || c == '"') return lex_string();
    size_t next = pos_;
    if (const char32_t first = next_code_point(text_, next); is_word(first)) return lex_name();
    lex_operator(open);
  }

  void lex_name() {
    const size_t start = pos_;
    while (pos_ < text_.size()) {
      size_t next = pos_;
      const char32_t c = next_code_point(text_, next);
      if (!is_word(c) && !is_identifier("a" + std::string(text_.substr(pos_, next - pos_)))) break;
      pos_ = next;
    }
    const auto name = text_.substr(start, pos_ - start);
    if (!is_identifier(name)) fail_here(fmt::format("'{}' is not a name", name));
    add(TokenKind::kName, std::string(name), start);
  }

  void lex_operator(std::string& open) {
    static constexpr std::string_view kOperators[] = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    for (const auto op : kOperators) {
      if (!at(op)) continue;
      balance(op, open);
      add(TokenKind::kOperator, std::string(op));
      pos_ += op.size();
      return;
    }
    size_t next = pos_;
    next_code_point(text_, next);
    fail_here(fmt::format("unexpected character '{}'", text_.substr(pos_, next - pos_)));
  }

  void balance(std::string_view op, std::string& open) {
    if (op == "{") open += '}';
    if (op == "(") open += ')';
    if (op == "[") open += ']';
    if (op != "}" && op != ")" && op != "]") return;
    if (open.empty()) fail_here(fmt::format("unexpected '{}'", op));
    if (open.back() != op[0])
      fail_here(fmt::format("unexpected '{}', expected '{}'", op, open.back()));
    open.pop_back();
  }

  // Digits with single underscores between them, from `pos`; the place behind the last.
  size_t digits_end(size_t pos, std::string_view allowed = "0123456789") const {
    const auto is_digit = [&](size_t i) {
      return i < text_.size() && allowed.find(text_[i]) != std::string_view::npos;
    };
    while (is_digit(pos) || (pos < text_.size() && text_[pos] == '_' && is_digit(pos + 1))) ++pos;
    return pos;
  }

  bool digit_at(size_t pos) const { return pos < text_.size() && is_ascii_digit(text_[pos]); }

  // The end of the float at pos_, or pos_ where there is none.
  size_t float_end() const {
    if (pos_ > 0 && text_[pos_ - 1] == '.') return pos_;
    size_t end = digits_end(pos_);
    bool is_float = false;
    if (end < text_.size() && text_[end] == '.' && digit_at(end + 1)) {
      end = digits_end(end + 1);
      is_float = true;
    }
    if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      const bool sign = end + 1 < text_.size() && (text_[end + 1] == '+' || text_[end + 1] == '-');
      if (digit_at(end + 1 + (sign ? 1 : 0))) {
        end = digits_end(end + 1 + (sign ? 1 : 0));
        is_float = true;
      }
    }
    return is_float ? end : pos_;
  }

  void lex_number() {
    const size_t start = pos_;
    if (const size_t end = float_end(); end > start) {
      pos_ = end;
      std::string digits(text_.substr(start, end - start));
      std::erase(digits, '_');
      double value = 0;
      const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
      if (result.ec != std::errc()) fail_here(fmt::format("the number {} is out of range", digits));
      add(TokenKind::kFloat, digits, start);
      tokens_.back().number = Value(value);
      return;
    }
    lex_integer(start);
  }

  void lex_integer(size_t start) {
    int base = 10;
    if (text_[pos_] == '0' && pos_ + 1 < text_.size()) {
      const char marker = static_cast<char>(text_[pos_ + 1] | 0x20);
      const int wanted = marker == 'b' ? 2 : marker == 'o' ? 8 : marker == 'x' ? 16 : 10;
      const std::string_view allowed =
          std::string_view("0123456789abcdefABCDEF")
              .substr(0, wanted == 16 ? 22 : static_cast<size_t>(wanted));
      const size_t end = wanted == 10 ? pos_ : digits_end(pos_ + 2, allowed);
      if (end > pos_ + 2) {
        base = wanted;
        pos_ = end;
      }
    }
    if (base == 10) pos_ = text_[start] == '0' ? digits_end(start, "0") : digits_end(start);
    std::string digits(text_.substr(start, pos_ - start));
    std::erase(digits, '_');
    Integer value = 0;
    for (const char c : digits.substr(base == 10 ? 0 : 2)) {
      const int digit = is_ascii_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10;
      if (value > (Integer{1} << 120)) fail_here(fmt::format("the number {} is too large", digits));
      value = value * base + digit;
    }
    add(TokenKind::kInteger, digits, start);
    tokens_.back().number = Value(value);
  }

  void lex_string() {
    const size_t start = pos_;
    const char quote = text_[pos_];
    size_t end = start + 1;
    while (end < text_.size() && text_[end] != quote) end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size()) fail_here("a string is not closed");
    const auto content = text_.substr(start + 1, end - start - 1);
    std::string value = unescape(content);
    pos_ = end + 1;
    add(TokenKind::kString, std::move(value), start);
  }

  std::string unescape(std::string_view content) {
    std::string out;
    for (size_t i = 0; i < content.size();) {
      if (content[i] != '\\' || i + 1 >= content.size()) {
        out += content[i++];
        continue;
      }
      i = unescape_one(content, i + 1, out);
    }
    return out;
  }

  // content[i] follows a backslash; returns the place behind the escape.
  size_t unescape_one(std::string_view content, size_t i, std::string& out) {
    static constexpr std::string_view kFrom = "\\'\"abfnrtv";
    static constexpr std::string_view kTo = "\\'\"\a\b\f\n\r\t\v";
    const char c = content[i];
    if (c == '\n') return i + 1;
    if (const size_t simple = kFrom.find(c); simple != std::string_view::npos) {
      out += kTo[simple];
      return i + 1;
    }
    if (c >= '0' && c <= '7') {
      char32_t value = 0;
      size_t end = i;
      while (end < content.size() && end < i + 3 && content[end] >= '0' && content[end] <= '7') {
        value = value * 8 + static_cast<char32_t>(content[end++] - '0');
      }
      append_code_point(out, value);
      return end;
    }
    const size_t num_digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (num_digits > 0) return unescape_hex(content, i + 1, num_digits, out);
    if (c == 'N') fail_here("\\N{…} escapes are not supported; write the character itself");
    out += '\\';
    out += c;
    return i + 1;
  }

  size_t unescape_hex(std::string_view content, size_t i, size_t num_digits, std::string& out) {
    const auto digits = content.substr(i, num_digits);
    uint32_t value = 0;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (digits.size() < num_digits || result.ptr != digits.data() + digits.size()) {
      fail_here("a string has a truncated \\x, \\u or \\U escape");
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) {
      fail_here(fmt::format("a string has an escape U+{:04X}, which is no character", value));
    }
    append_code_point(out, value);
    return i + num_digits;
  }

  std::string source_;
  std::string_view text_;
  size_t pos_ = 0;
  size_t counted_to_ = 0;
  int line_ = 1;
  bool line_starting_ = true;  // only white space stands before pos_ on its line's data
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(source).run(); }

void throw_template_error(ErrorKind kind, int line, const std::string& message) {
  throw_error(kind, "chat template, line {}: {}", line, message);
}

}  // namespace minisgl::jinja
