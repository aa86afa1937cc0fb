// SentencePiece's precompiled character maps: normalization rules in a double-array trie.
#pragma once

#include <memory>
#include <string_view>

#include "tokenizer/normalizer.h"

namespace minisgl {

// SentencePiece replaces the longest rule that matches at each place; Hugging Face looks at one
// grapheme (up to 5 bytes) after another, or its characters, and takes the shortest.
enum class CharsmapReading { kSentencePiece, kHuggingFace };

// map: little-endian u32 size of the trie in bytes, the trie (u32 units), replacements that end in
// a zero byte. what: for errors. Errors: kBadFile when these do not fit together.
std::unique_ptr<Normalizer> make_charsmap_normalizer(std::string_view map, CharsmapReading reading,
                                                     std::string_view what);

// Errors: kBadFile, naming `what`.
std::string decode_base64(std::string_view text, std::string_view what);

}  // namespace minisgl
