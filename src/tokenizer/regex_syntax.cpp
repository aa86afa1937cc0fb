#include <vector>

#include "tokenizer/regex.h"
#include "utils/error.h"

namespace minisgl {
namespace {

constexpr std::string_view kSpace = "\\p{White_Space}";
constexpr std::string_view kWordInClass = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";
// Outside of a class Oniguruma counts Latin-1's superscript digits and fractions in.
constexpr std::string_view kWordAlone =
    "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}";

// Copies the pattern from left to right, changing what PCRE2 reads differently.
class Translator {
 public:
  Translator(std::string_view pattern, std::string_view what) : in_(pattern), what_(what) {}

  std::string run() {
    while (pos_ < in_.size()) step();
    return std::move(out_);
  }

 private:
  char peek(size_t ahead = 0) const { return pos_ + ahead < in_.size() ? in_[pos_ + ahead] : '\0'; }
  void copy(size_t count) {
    out_ += in_.substr(pos_, count);
    pos_ = std::min(in_.size(), pos_ + count);
  }
  [[noreturn]] void refuse(const char* reason) const {
    throw_error(ErrorKind::kBadFile, "{}: regular expression '{}': {} at byte {} is not supported",
                what_, in_, reason, pos_);
  }

  void step() {
    switch (peek()) {
      case '\\':
        atom_ = out_.size();
        escape();
        break;
      case '[':
        atom_ = out_.size();
        char_class();
        break;
      case '(':
        groups_.push_back(out_.size());
        if (groups_.size() > 200) refuse("nesting this deep");
        open_group();
        break;
      case ')':
        if (!groups_.empty()) {
          atom_ = groups_.back();
          groups_.pop_back();
        }
        copy(1);
        break;
      case '{':
        interval();
        break;
      case '*':
      case '+':
      case '?':
        copy(1);
        break;
      default:
        atom_ = out_.size();
        copy(1);
        while (pos_ < in_.size() && (static_cast<unsigned char>(in_[pos_]) & 0xC0) == 0x80) copy(1);
    }
  }

  void escape() {
    switch (peek(1)) {
      case 's':
        out_ += kSpace;
        break;
      case 'S':
        out_ += "\\P{White_Space}";
        break;
      case 'w':
        out_ += "[" + std::string(kWordAlone) + "]";
        break;
      case 'W':
        out_ += "[^" + std::string(kWordAlone) + "]";
        break;
      case 'b':
      case 'B':
        word_boundary(peek(1) == 'b');
        break;
      case 'h':
        out_ += "[0-9a-fA-F]";
        break;
      case 'H':
        out_ += "[^0-9a-fA-F]";
        break;
      case 'u':
        code_point();
        return;
      default:
        copy(2);
        copy_braces();
        return;
    }
    pos_ += 2;
  }

  // The {…} of \p{L} and \x{4e2d}, just behind the letter.
  void copy_braces() {
    const char letter = in_[pos_ - 1];
    if (peek() != '{' || (letter != 'p' && letter != 'P' && letter != 'x')) return;
    while (pos_ < in_.size() && peek() != '}') copy(1);
    copy(1);
  }

  void word_boundary(bool positive) {
    const std::string word = "[" + std::string(kWordAlone) + "]";
    const char* second_after = positive ? "!" : "=";
    const char* second_before = positive ? "=" : "!";
    out_ += "(?:(?<=" + word + ")(?" + second_after + word + ")|(?<!" + word + ")(?" +
            second_before + word + "))";
  }

  void code_point() {
    const std::string_view digits = in_.substr(std::min(in_.size(), pos_ + 2), 4);
    if (digits.size() != 4 ||
        digits.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos) {
      refuse("\\u without four hexadecimal digits");
    }
    out_ += "\\x{" + std::string(digits) + "}";
    pos_ += 6;
  }

  void char_class() {
    copy(1);
    if (peek() == '^') copy(1);
    if (peek() == ']') {  // the first one is an ordinary character
      out_ += "\\]";
      ++pos_;
    }
    while (pos_ < in_.size() && peek() != ']') class_item();
    copy(1);
  }

  void class_item() {
    if (peek() == '[') {
      if (peek(1) != ':') refuse("a character class inside a character class");
      const size_t end = in_.find(":]", pos_ + 2);
      if (end == std::string_view::npos) refuse("an unfinished [: :]");
      copy(end + 2 - pos_);
    } else if (peek() == '&' && peek(1) == '&') {
      refuse("the intersection of character classes (&&)");
    } else if (peek() == '\\') {
      class_escape();
    } else {
      copy(1);
    }
  }

  void class_escape() {
    switch (peek(1)) {
      case 's':
        out_ += kSpace;
        break;
      case 'S':
        out_ += "\\P{White_Space}";
        break;
      case 'w':
        out_ += kWordInClass;
        break;
      case 'h':
        out_ += "0-9a-fA-F";
        break;
      case 'W':
      case 'H':
        refuse("\\W or \\H inside a character class");
      case 'u':
        code_point();
        return;
      default:
        copy(2);
        copy_braces();
        return;
    }
    pos_ += 2;
  }

  void open_group() {
    copy(1);
    if (peek() != '?') return;
    copy(1);
    // Option letters up to ':' or ')': Ruby's m is everyone else's s.
    size_t end = pos_;
    while (end < in_.size() &&
           (in_[end] == 'i' || in_[end] == 'm' || in_[end] == 'x' || in_[end] == '-')) {
      ++end;
    }
    if (end == pos_ || end >= in_.size() || (in_[end] != ':' && in_[end] != ')')) {
      // (?: (?= (?! (?> (?<…: the mark must not be taken for a quantifier or an atom
      if (pos_ < in_.size()) copy(1);
      if (in_[pos_ - 1] == '<' && (peek() == '=' || peek() == '!')) copy(1);
      return;
    }
    for (; pos_ < end; ++pos_) out_ += in_[pos_] == 'm' ? 's' : in_[pos_];
    if (peek() == ':') copy(1);
  }

  // {n}, {n,}, {n,m} and {,m}; anything else is text.
  void interval() {
    size_t end = pos_ + 1;
    while (end < in_.size() && ((in_[end] >= '0' && in_[end] <= '9') || in_[end] == ',')) ++end;
    const std::string body(in_.substr(pos_ + 1, end - pos_ - 1));
    const bool quantifier = end < in_.size() && in_[end] == '}' && !body.empty() && body != "," &&
                            body.find(',') == body.rfind(',') && !out_.empty();
    if (!quantifier) {
      atom_ = out_.size();
      out_ += "\\{";
      ++pos_;
      return;
    }
    out_ += body.front() == ',' ? "{0" : "{";
    out_ += body;
    out_ += '}';
    pos_ = end + 1;
    if (peek() == '+') {
      out_.insert(atom_, "(?:");
      out_ += ")+";
      ++pos_;
    }
  }

  std::string_view in_;
  std::string_view what_;
  std::string out_;
  size_t pos_ = 0;
  size_t atom_ = 0;             // where the last atom begins in out_
  std::vector<size_t> groups_;  // where the open groups begin in out_
};

}  // namespace

std::string oniguruma_to_pcre2(std::string_view pattern, std::string_view what) {
  return Translator(pattern, what).run();
}

}  // namespace minisgl
