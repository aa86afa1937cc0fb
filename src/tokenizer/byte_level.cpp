#include "tokenizer/byte_level.h"

#include <array>

#include "tokenizer/utf8.h"

namespace minisgl {
namespace {

constexpr bool stands_for_itself(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) ||
         (byte >= 0xAE && byte <= 0xFF);
}

struct Alphabet {
  std::array<char32_t, 256> chars{};
  std::array<int16_t, 0x144> bytes{};

  constexpr Alphabet() {
    for (auto& byte : bytes) byte = -1;
    char32_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const char32_t c = stands_for_itself(byte) ? static_cast<char32_t>(byte) : next++;
      chars[static_cast<size_t>(byte)] = c;
      bytes[c] = static_cast<int16_t>(byte);
    }
  }
};
constexpr Alphabet kAlphabet;

}  // namespace

char32_t byte_to_alphabet(uint8_t byte) { return kAlphabet.chars[byte]; }

int alphabet_to_byte(char32_t c) { return c < kAlphabet.bytes.size() ? kAlphabet.bytes[c] : -1; }

void append_in_alphabet(std::string& out, std::string_view bytes) {
  for (const char c : bytes) append_utf8(out, byte_to_alphabet(static_cast<uint8_t>(c)));
}

std::optional<std::string> bytes_of_alphabet(std::string_view token) {
  std::string bytes;
  bytes.reserve(token.size());
  for (size_t pos = 0; pos < token.size();) {
    const int byte = alphabet_to_byte(next_code_point(token, pos));
    if (byte < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(byte));
  }
  return bytes;
}

}  // namespace minisgl
