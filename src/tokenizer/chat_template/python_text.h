// Python's str operations on UTF-8 text: positions and lengths are code points, classes and case
// follow Unicode. Every input is valid UTF-8 (is_valid_utf8), every result is too. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace minisgl::jinja {

// The byte where `text` stops being UTF-8, or nothing.
std::optional<size_t> invalid_utf8_at(std::string_view text);
// The code point at byte `pos`, which moves behind it.
char32_t next_code_point(std::string_view text, size_t& pos);
void append_code_point(std::string& out, char32_t code_point);
int64_t num_code_points(std::string_view text);
// The byte where code point `index` starts; text.size() where there are fewer.
size_t byte_of(std::string_view text, int64_t index);
std::vector<std::string_view> code_points(std::string_view text);

bool is_space(char32_t code_point);      // str.isspace of one character, and re's \s
bool is_word(char32_t code_point);       // re's \w
bool is_printable(char32_t code_point);  // not escaped by repr
bool is_identifier(std::string_view text);

std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalize(std::string_view text);
std::string title(std::string_view text);
std::string swapcase(std::string_view text);

enum class Side { kLeft, kRight, kBoth };
// Strips `chars`, or white space without them.
std::string_view strip(std::string_view text, Side side, std::optional<std::string_view> chars);

// max_split < 0: all. Without a separator runs of white space separate and empty parts vanish.
std::vector<std::string_view> split(std::string_view text,
                                    std::optional<std::string_view> separator, int64_t max_split);
std::vector<std::string_view> rsplit(std::string_view text,
                                     std::optional<std::string_view> separator, int64_t max_split);
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);
// count < 0: all. An empty `from` matches between characters, as in Python.
std::string replace(std::string_view text, std::string_view from, std::string_view to,
                    int64_t count);
int64_t count_substring(std::string_view text, std::string_view part);
// Code-point position, -1 where absent.
int64_t find_substring(std::string_view text, std::string_view part, bool from_the_right);

enum class TextClass {
  kAlpha,
  kDigit,
  kDecimal,
  kNumeric,
  kAlnum,
  kSpace,
  kLower,
  kUpper,
  kTitle,
  kAscii,
  kPrintable
};
// str.isalpha and its siblings.
bool has_class(std::string_view text, TextClass text_class);

// Python's repr of a string, quotes included.
std::string repr_text(std::string_view text);
std::string escape_html(std::string_view text);

}  // namespace minisgl::jinja
