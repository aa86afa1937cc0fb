// UTF-8 and the few Unicode properties that tokenizers ask for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace minisgl {

// What stands at the front of a byte string.
struct Utf8Step {
  char32_t code_point = 0;
  uint8_t length = 0;  // bytes taken: of the character, or of the longest part that could begin one
  bool valid = false;  // a whole character
  bool cut_off = false;  // not valid, but more bytes could make it so
};
// bytes: not empty.
Utf8Step utf8_step(std::string_view bytes);

bool is_valid_utf8(std::string_view bytes);
// Every maximal invalid part becomes U+FFFD, as Unicode recommends and Rust and Python do.
std::string to_valid_utf8(std::string_view bytes);
void append_utf8(std::string& out, char32_t code_point);

// The character at `pos` of valid UTF-8; moves `pos` past it.
char32_t next_code_point(std::string_view text, size_t& pos);
// The last character of valid, non-empty UTF-8, and where it begins.
char32_t last_code_point(std::string_view text, size_t& begin);
inline bool is_utf8_continuation(char c) { return (static_cast<uint8_t>(c) & 0xC0) == 0x80; }
// Bytes of the character that begins with `lead` in valid UTF-8.
inline size_t utf8_length(char lead) {
  const auto c = static_cast<uint8_t>(lead);
  return c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
}

bool is_space(char32_t c);        // White_Space
bool is_word(char32_t c);         // letters, marks, decimal digits, connectors, joiners
bool is_numeric(char32_t c);      // Nd, Nl, No
bool is_punctuation(char32_t c);  // ASCII punctuation and symbols, or category P

// Makes valid UTF-8 out of bytes that arrive in any portions. The concatenation of everything
// appended equals to_valid_utf8 of all bytes.
class Utf8Assembler {
 public:
  // Appends the whole characters that are now known; an unfinished one waits.
  void push(std::string_view bytes, std::string& out);
  // Appends U+FFFD if a character was left unfinished.
  void finish(std::string& out);
  bool empty() const { return pending_.empty(); }

 private:
  std::string pending_;  // at most 3 bytes: the beginning of a character
};

}  // namespace minisgl
