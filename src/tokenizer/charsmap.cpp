#include "tokenizer/charsmap.h"

#include <utf8proc.h>

#include <cstring>
#include <vector>

#include "tokenizer/utf8.h"
#include "utils/error.h"

namespace minisgl {
namespace {

// The units of darts-clone: https://github.com/s-yata/darts-clone
//   bits 0-7 label, 8 has a leaf, 9 offset is in 256s, 10-31 offset; a leaf is its value with bit
//   31
class DoubleArray {
 public:
  DoubleArray() = default;
  explicit DoubleArray(std::vector<uint32_t> units) : units_(std::move(units)) {}

  // take(length, value) for every key that `text` begins with, the shortest first, while it says
  // true. A damaged array ends the search.
  template <class F>
  void prefixes(std::string_view text, F&& take) const {
    if (units_.empty()) return;
    size_t node = offset(units_[0]);
    for (size_t i = 0; i < text.size(); ++i) {
      const auto c = static_cast<uint8_t>(text[i]);
      node ^= c;
      if (c == 0 || node >= units_.size()) return;
      const uint32_t unit = units_[node];
      if ((unit & (kLeafBit | 0xFF)) != c) return;
      node ^= offset(unit);
      if (node >= units_.size()) return;
      if (unit >> 8 & 1) {
        if (!take(i + 1, units_[node] & ~kLeafBit)) return;
      }
    }
  }

 private:
  static constexpr uint32_t kLeafBit = 1u << 31;
  static size_t offset(uint32_t unit) { return size_t{unit >> 10} << ((unit & (1u << 9)) >> 6); }
  std::vector<uint32_t> units_;
};

class CharsmapNormalizer : public Normalizer {
 public:
  CharsmapNormalizer(DoubleArray trie, std::string replacements, CharsmapReading reading)
      : trie_(std::move(trie)), replacements_(std::move(replacements)), reading_(reading) {}

  void apply(std::string& text, RegexScratch&) const override {
    std::string out;
    out.reserve(text.size());
    if (reading_ == CharsmapReading::kSentencePiece) {
      replace_longest(text, out);
    } else {
      replace_graphemes(text, out);
    }
    text = std::move(out);
  }

 private:
  struct Rule {
    size_t length = 0;  // of what it replaces; 0: none matches
    std::string_view replacement;
  };

  Rule rule(std::string_view text, bool longest) const {
    Rule found;
    trie_.prefixes(text, [&](size_t length, uint32_t value) {
      if (value >= replacements_.size()) return false;
      found = {length, std::string_view(replacements_.c_str() + value)};
      return longest;
    });
    return found;
  }

  void replace_longest(std::string_view text, std::string& out) const {
    for (size_t pos = 0; pos < text.size();) {
      const Rule best = rule(text.substr(pos), true);
      const size_t length = best.length > 0 ? best.length : utf8_length(text[pos]);
      out += best.length > 0 ? best.replacement : text.substr(pos, length);
      pos += length;
    }
  }

  void replace_graphemes(std::string_view text, std::string& out) const {
    constexpr size_t kMaxGraphemeBytes = 5;
    for (size_t pos = 0; pos < text.size();) {
      const std::string_view grapheme = text.substr(pos, grapheme_bytes(text, pos));
      pos += grapheme.size();
      if (grapheme.size() <= kMaxGraphemeBytes) {
        if (const Rule whole = rule(grapheme, false); whole.length > 0) {
          out += whole.replacement;
          continue;
        }
      }
      for (size_t i = 0; i < grapheme.size();) {
        const std::string_view character = grapheme.substr(i, utf8_length(grapheme[i]));
        const Rule one = rule(character, false);
        out += one.length > 0 ? one.replacement : character;
        i += character.size();
      }
    }
  }

  static size_t grapheme_bytes(std::string_view text, size_t begin) {
    size_t end = begin;
    char32_t previous = next_code_point(text, end);
    utf8proc_int32_t state = 0;
    while (end < text.size()) {
      size_t next = end;
      const char32_t c = next_code_point(text, next);
      if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(previous),
                                           static_cast<utf8proc_int32_t>(c), &state)) {
        break;
      }
      previous = c;
      end = next;
    }
    return end - begin;
  }

  DoubleArray trie_;
  std::string replacements_;  // each ends in a zero byte
  CharsmapReading reading_;
};

}  // namespace

std::unique_ptr<Normalizer> make_charsmap_normalizer(std::string_view map, CharsmapReading reading,
                                                     std::string_view what) {
  uint32_t trie_bytes = 0;
  if (map.size() >= 4) std::memcpy(&trie_bytes, map.data(), 4);
  if (map.size() < 4 || trie_bytes % 4 != 0 || trie_bytes > map.size() - 4) {
    throw_error(ErrorKind::kBadFile, "{}: a character map of {} bytes says its trie has {}", what,
                map.size(), trie_bytes);
  }
  std::vector<uint32_t> units(trie_bytes / 4);
  std::memcpy(units.data(), map.data() + 4, trie_bytes);
  std::string replacements(map.substr(4 + trie_bytes));
  if (!is_valid_utf8(replacements)) {
    throw_error(ErrorKind::kBadFile, "{}: the character map's replacements are not valid UTF-8",
                what);
  }
  return std::make_unique<CharsmapNormalizer>(DoubleArray(std::move(units)),
                                              std::move(replacements), reading);
}

std::string decode_base64(std::string_view text, std::string_view what) {
  std::string bytes;
  uint32_t buffer = 0;
  int bits = 0;
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  for (const char c : text) {
    int value = -1;
    if (c >= 'A' && c <= 'Z') value = c - 'A';
    if (c >= 'a' && c <= 'z') value = c - 'a' + 26;
    if (c >= '0' && c <= '9') value = c - '0' + 52;
    if (c == '+') value = 62;
    if (c == '/') value = 63;
    if (value < 0) throw_error(ErrorKind::kBadFile, "{}: not base64", what);
    buffer = buffer << 6 | static_cast<uint32_t>(value);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes.push_back(static_cast<char>(buffer >> bits & 0xFF));
    }
  }
  return bytes;
}

}  // namespace minisgl
