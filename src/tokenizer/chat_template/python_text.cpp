#include "tokenizer/chat_template/python_text.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>

namespace minisgl::jinja {
namespace {

utf8proc_category_t category(char32_t code_point) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code_point));
}

bool is_letter(char32_t code_point) {
  const auto c = category(code_point);
  return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t code_point) { return category(code_point) == UTF8PROC_CATEGORY_ND; }

// Superscripts, subscripts and circled digits: digits that are no decimals.
bool is_digit(char32_t c) {
  return is_decimal(c) || c == 0xB2 || c == 0xB3 || c == 0xB9 || c == 0x2070 ||
         (c >= 0x2074 && c <= 0x2079) || (c >= 0x2080 && c <= 0x2089) ||
         (c >= 0x2460 && c <= 0x2468) || (c >= 0x2474 && c <= 0x247C) ||
         (c >= 0x2488 && c <= 0x2490) || c == 0x24EA || (c >= 0x2776 && c <= 0x277E) ||
         (c >= 0x2780 && c <= 0x2788) || (c >= 0x278A && c <= 0x2792);
}

// The ideographs that Unicode gives a numeric value.
bool is_numeric_ideograph(char32_t c) {
  static constexpr std::u32string_view kIdeographs =
      U"㐅㒃㠪㭍一七万三九二五亖亿什仟仨伍佰億兆兩八六十千卄卅卌叁参參叄四壱壹壹幺廾廿弌弍弎弐"
      U"拾捌柒漆玖百肆萬貮貳贰賓阡陆陌陸零〇";
  return kIdeographs.find(c) != std::u32string_view::npos;
}

bool is_numeric(char32_t c) {
  const auto kind = category(c);
  return kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL ||
         kind == UTF8PROC_CATEGORY_NO || is_numeric_ideograph(c);
}

bool is_upper(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LU; }
bool is_lower(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LL || c == 0xAA || c == 0xBA; }
bool is_title(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LT; }
bool is_cased(char32_t c) { return is_upper(c) || is_lower(c) || is_title(c); }

// Characters whose upper case is more than one character.
std::u32string_view long_upper(char32_t c) {
  switch (c) {
    case 0xDF:
      return U"SS";
    case 0x149:
      return U"\u02BCN";
    case 0x1F0:
      return U"J\u030C";
    case 0x390:
      return U"\u0399\u0308\u0301";
    case 0x3B0:
      return U"\u03A5\u0308\u0301";
    case 0x587:
      return U"\u0535\u0552";
    case 0xFB00:
      return U"FF";
    case 0xFB01:
      return U"FI";
    case 0xFB02:
      return U"FL";
    case 0xFB03:
      return U"FFI";
    case 0xFB04:
      return U"FFL";
    case 0xFB05:
    case 0xFB06:
      return U"ST";
    default:
      return {};
  }
}

void append_upper(std::string& out, char32_t c) {
  const auto more = long_upper(c);
  if (more.empty()) {
    append_code_point(out, static_cast<char32_t>(utf8proc_toupper(static_cast<int32_t>(c))));
  }
  for (const char32_t part : more) append_code_point(out, part);
}

void append_title(std::string& out, char32_t c) {
  const auto more = long_upper(c);
  if (more.empty()) {
    append_code_point(out, static_cast<char32_t>(utf8proc_totitle(static_cast<int32_t>(c))));
    return;
  }
  append_code_point(out, more.front());
  for (const char32_t part : more.substr(1)) {
    append_code_point(out, static_cast<char32_t>(utf8proc_tolower(static_cast<int32_t>(part))));
  }
}

// A sigma that ends a word has its own lower-case form.
bool is_final_sigma(std::string_view text, size_t start, size_t end, bool after_cased) {
  (void)start;
  if (!after_cased) return false;
  while (end < text.size()) {
    const char32_t next = next_code_point(text, end);
    const auto kind = category(next);
    if (kind == UTF8PROC_CATEGORY_MN || kind == UTF8PROC_CATEGORY_CF || next == '\'') continue;
    return !is_cased(next);
  }
  return true;
}

void append_lower(std::string& out, std::string_view text, size_t start, size_t end, char32_t c,
                  bool after_cased) {
  if (c == 0x3A3) {
    append_code_point(out, is_final_sigma(text, start, end, after_cased) ? 0x3C2 : 0x3C3);
  } else if (c == 0x130) {
    out += "i\u0307";
  } else {
    append_code_point(out, static_cast<char32_t>(utf8proc_tolower(static_cast<int32_t>(c))));
  }
}

bool contains(std::string_view chars, char32_t code_point) {
  for (size_t pos = 0; pos < chars.size();) {
    if (next_code_point(chars, pos) == code_point) return true;
  }
  return false;
}

size_t previous_start(std::string_view text, size_t end) {
  size_t start = end - 1;
  while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
  return start;
}

bool is_line_break(char32_t c) {
  return (c >= '\n' && c <= '\r') || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

std::vector<std::string_view> split_spaces(std::string_view text, int64_t max_split) {
  std::vector<std::string_view> parts;
  text = strip(text, Side::kLeft, std::nullopt);
  while (!text.empty()) {
    if (max_split >= 0 && static_cast<int64_t>(parts.size()) == max_split) {
      parts.push_back(text);  // the rest keeps the white space at its end
      break;
    }
    size_t end = 0;
    for (size_t pos = 0; pos < text.size(); end = pos) {
      if (is_space(next_code_point(text, pos))) break;
    }
    parts.push_back(text.substr(0, end));
    text = strip(text.substr(end), Side::kLeft, std::nullopt);
  }
  return parts;
}

std::vector<std::string_view> rsplit_spaces(std::string_view text, int64_t max_split) {
  std::vector<std::string_view> parts;
  text = strip(text, Side::kRight, std::nullopt);
  while (!text.empty()) {
    if (max_split >= 0 && static_cast<int64_t>(parts.size()) == max_split) {
      parts.push_back(text);
      break;
    }
    size_t start = text.size();
    while (start > 0) {
      const size_t before = previous_start(text, start);
      size_t pos = before;
      if (is_space(next_code_point(text, pos))) break;
      start = before;
    }
    parts.push_back(text.substr(start));
    text = strip(text.substr(0, start), Side::kRight, std::nullopt);
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

}  // namespace

std::optional<size_t> invalid_utf8_at(std::string_view text) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (size_t pos = 0; pos < text.size();) {
    if (bytes[pos] < 0x80) {
      ++pos;
      continue;
    }
    utf8proc_int32_t code_point = 0;
    const auto length = utf8proc_iterate(
        bytes + pos, static_cast<utf8proc_ssize_t>(text.size() - pos), &code_point);
    if (length <= 0) return pos;
    pos += static_cast<size_t>(length);
  }
  return std::nullopt;
}

char32_t next_code_point(std::string_view text, size_t& pos) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) & 0x3FU : 0U;
  };
  const auto first = static_cast<unsigned char>(text[pos]);
  if (first < 0x80) {
    ++pos;
    return first;
  }
  const size_t at = pos;
  if (first < 0xE0) {
    pos = std::min(at + 2, text.size());
    return ((first & 0x1FU) << 6) | byte(at + 1);
  }
  if (first < 0xF0) {
    pos = std::min(at + 3, text.size());
    return ((first & 0x0FU) << 12) | (byte(at + 1) << 6) | byte(at + 2);
  }
  pos = std::min(at + 4, text.size());
  return ((first & 0x07U) << 18) | (byte(at + 1) << 12) | (byte(at + 2) << 6) | byte(at + 3);
}

void append_code_point(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | (c >> 6));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | (c >> 12));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (c >> 18));
    out += static_cast<char>(0x80 | ((c >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

int64_t num_code_points(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

size_t byte_of(std::string_view text, int64_t index) {
  size_t pos = 0;
  for (; pos < text.size(); ++pos) {
    if ((static_cast<unsigned char>(text[pos]) & 0xC0) == 0x80) continue;
    if (index-- == 0) break;
  }
  return pos;
}

std::vector<std::string_view> code_points(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t pos = 0; pos < text.size();) {
    const size_t start = pos;
    next_code_point(text, pos);
    parts.push_back(text.substr(start, pos - start));
  }
  return parts;
}

bool is_space(char32_t c) {
  return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_word(char32_t c) { return c == '_' || is_letter(c) || is_numeric(c); }

bool is_printable(char32_t c) {
  if (c == ' ') return true;
  const auto kind = category(c);
  return kind != UTF8PROC_CATEGORY_CN && !(kind >= UTF8PROC_CATEGORY_ZS);
}

bool is_identifier(std::string_view text) {
  if (text.empty()) return false;
  for (size_t pos = 0; pos < text.size();) {
    const bool first = pos == 0;
    const char32_t c = next_code_point(text, pos);
    const auto kind = category(c);
    const bool start = c == '_' || is_letter(c) || kind == UTF8PROC_CATEGORY_NL;
    const bool inside = start || kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_MN ||
                        kind == UTF8PROC_CATEGORY_MC || kind == UTF8PROC_CATEGORY_PC || c == 0xB7;
    if (first ? !start : !inside) return false;
  }
  return true;
}

std::string upper(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) append_upper(out, next_code_point(text, pos));
  return out;
}

std::string lower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool after_cased = false;
  for (size_t pos = 0; pos < text.size();) {
    const size_t start = pos;
    const char32_t c = next_code_point(text, pos);
    append_lower(out, text, start, pos, c, after_cased);
    after_cased = is_cased(c);
  }
  return out;
}

std::string capitalize(std::string_view text) {
  if (text.empty()) return {};
  std::string out;
  size_t pos = 0;
  append_title(out, next_code_point(text, pos));
  return out + lower(text.substr(pos));
}

std::string title(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool after_cased = false;
  for (size_t pos = 0; pos < text.size();) {
    const size_t start = pos;
    const char32_t c = next_code_point(text, pos);
    if (after_cased) {
      append_lower(out, text, start, pos, c, true);
    } else {
      append_title(out, c);
    }
    after_cased = is_cased(c);
  }
  return out;
}

std::string swapcase(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) {
    const size_t start = pos;
    const char32_t c = next_code_point(text, pos);
    if (is_upper(c)) {
      append_lower(out, text, start, pos, c, false);
    } else {
      append_upper(out, c);
    }
  }
  return out;
}

std::string_view strip(std::string_view text, Side side, std::optional<std::string_view> chars) {
  const auto goes = [&](char32_t c) { return chars ? contains(*chars, c) : is_space(c); };
  while (side != Side::kRight && !text.empty()) {
    size_t pos = 0;
    if (!goes(next_code_point(text, pos))) break;
    text.remove_prefix(pos);
  }
  while (side != Side::kLeft && !text.empty()) {
    const size_t start = previous_start(text, text.size());
    size_t pos = start;
    if (!goes(next_code_point(text, pos))) break;
    text = text.substr(0, start);
  }
  return text;
}

std::vector<std::string_view> split(std::string_view text,
                                    std::optional<std::string_view> separator, int64_t max_split) {
  if (!separator) return split_spaces(text, max_split);
  std::vector<std::string_view> parts;
  while (max_split < 0 || static_cast<int64_t>(parts.size()) < max_split) {
    const size_t found = text.find(*separator);
    if (found == std::string_view::npos) break;
    parts.push_back(text.substr(0, found));
    text.remove_prefix(found + separator->size());
  }
  parts.push_back(text);
  return parts;
}

std::vector<std::string_view> rsplit(std::string_view text,
                                     std::optional<std::string_view> separator, int64_t max_split) {
  if (!separator) return rsplit_spaces(text, max_split);
  std::vector<std::string_view> parts;
  while (max_split < 0 || static_cast<int64_t>(parts.size()) < max_split) {
    const size_t found = text.rfind(*separator);
    if (found == std::string_view::npos) break;
    parts.push_back(text.substr(found + separator->size()));
    text = text.substr(0, found);
  }
  parts.push_back(text);
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  size_t line_start = 0;
  for (size_t pos = 0; pos < text.size();) {
    const size_t end = pos;
    const char32_t c = next_code_point(text, pos);
    if (!is_line_break(c)) continue;
    if (c == '\r' && pos < text.size() && text[pos] == '\n') ++pos;
    lines.push_back(text.substr(line_start, (keep_ends ? pos : end) - line_start));
    line_start = pos;
  }
  if (line_start < text.size()) lines.push_back(text.substr(line_start));
  return lines;
}

std::string replace(std::string_view text, std::string_view from, std::string_view to,
                    int64_t count) {
  std::string out;
  size_t pos = 0;
  if (from.empty()) {
    for (; count != 0; --count) {
      out += to;
      if (pos >= text.size()) return out;
      const size_t start = pos;
      next_code_point(text, pos);
      out += text.substr(start, pos - start);
    }
    return out += text.substr(pos);
  }
  for (; count != 0; --count) {
    const size_t found = text.find(from, pos);
    if (found == std::string_view::npos) break;
    out += text.substr(pos, found - pos);
    out += to;
    pos = found + from.size();
  }
  return out += text.substr(pos);
}

int64_t count_substring(std::string_view text, std::string_view part) {
  if (part.empty()) return num_code_points(text) + 1;
  int64_t count = 0;
  for (size_t pos = text.find(part); pos != std::string_view::npos;
       pos = text.find(part, pos + part.size())) {
    ++count;
  }
  return count;
}

int64_t find_substring(std::string_view text, std::string_view part, bool from_the_right) {
  const size_t found = from_the_right ? text.rfind(part) : text.find(part);
  if (found == std::string_view::npos) return -1;
  return num_code_points(text.substr(0, found));
}

namespace {

// Upper or lower: some cased character, and none of the other case.
bool is_all_cased(std::string_view text, bool want_upper) {
  bool any = false;
  for (size_t pos = 0; pos < text.size();) {
    const char32_t c = next_code_point(text, pos);
    if (is_title(c) || (want_upper ? is_lower(c) : is_upper(c))) return false;
    any = any || is_cased(c);
  }
  return any;
}

bool is_titled(std::string_view text) {
  bool any = false;
  bool after_cased = false;
  for (size_t pos = 0; pos < text.size();) {
    const char32_t c = next_code_point(text, pos);
    if ((is_upper(c) || is_title(c)) && after_cased) return false;
    if (is_lower(c) && !after_cased) return false;
    after_cased = is_cased(c);
    any = any || after_cased;
  }
  return any;
}

bool in_class(char32_t c, TextClass text_class) {
  switch (text_class) {
    case TextClass::kAlpha:
      return is_letter(c);
    case TextClass::kDigit:
      return is_digit(c);
    case TextClass::kDecimal:
      return is_decimal(c);
    case TextClass::kNumeric:
      return is_numeric(c);
    case TextClass::kAlnum:
      return is_letter(c) || is_numeric(c);
    case TextClass::kSpace:
      return is_space(c);
    case TextClass::kAscii:
      return c < 0x80;
    case TextClass::kPrintable:
      return is_printable(c);
    default:
      return false;
  }
}

}  // namespace

bool has_class(std::string_view text, TextClass text_class) {
  if (text_class == TextClass::kUpper) return is_all_cased(text, true);
  if (text_class == TextClass::kLower) return is_all_cased(text, false);
  if (text_class == TextClass::kTitle) return is_titled(text);
  for (size_t pos = 0; pos < text.size();) {
    if (!in_class(next_code_point(text, pos), text_class)) return false;
  }
  return !text.empty() || text_class == TextClass::kAscii || text_class == TextClass::kPrintable;
}

std::string repr_text(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const bool has_double = text.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  std::string out(1, quote);
  for (size_t pos = 0; pos < text.size();) {
    const size_t start = pos;
    const char32_t c = next_code_point(text, pos);
    if (c == static_cast<unsigned char>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (is_printable(c)) {
      out += text.substr(start, pos - start);
    } else if (c < 0x100) {
      out += fmt::format("\\x{:02x}", static_cast<uint32_t>(c));
    } else if (c < 0x10000) {
      out += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
    } else {
      out += fmt::format("\\U{:08x}", static_cast<uint32_t>(c));
    }
  }
  return out += quote;
}

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&#34;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace minisgl::jinja
