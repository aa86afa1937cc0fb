// The alphabet of byte-level vocabularies (GPT-2): every byte is written as one printable
// character. Printable Latin-1 stands for itself, the other 68 bytes are U+0100 … U+0143.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace minisgl {

char32_t byte_to_alphabet(uint8_t byte);
// -1 where the character is not in the alphabet.
int alphabet_to_byte(char32_t c);

// Appends `bytes` written in the alphabet.
void append_in_alphabet(std::string& out, std::string_view bytes);
// The bytes that `token` (valid UTF-8) stands for; empty where a character is not in the alphabet.
std::optional<std::string> bytes_of_alphabet(std::string_view token);

}  // namespace minisgl
