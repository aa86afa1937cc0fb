// Tokenizers of the SentencePiece kind, from whatever file their pieces come.
#pragma once

#include "tokenizer/pipeline.h"

namespace minisgl {

enum class PieceType {
  kUndefined = 0,
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

struct SentencePiece {
  std::string text;
  float score = 0;
  PieceType type = PieceType::kNormal;
};

struct SentencePieceSpec {
  std::vector<SentencePiece> pieces;  // by id
  bool unigram = false;               // otherwise BPE
  bool byte_fallback = true;          // unigram: whether unknown text becomes bytes
  bool add_dummy_prefix = true;       // a space before the text
  bool remove_extra_whitespaces = false;
  std::string charsmap;  // empty: text is taken as it is
  TokenizerInfo info;
};
// Errors: kBadFile, naming `name`.
TokenizerParts make_sentencepiece_parts(SentencePieceSpec spec, std::string_view name);

// Control, unknown and user-defined pieces, which are looked for in the raw text.
std::vector<AddedToken> added_tokens_of_pieces(const Vocab& vocab,
                                               const std::vector<PieceType>& types);
// Fills prefix and suffix as parts.info says.
void put_bos_and_eos_around(TokenizerParts& parts);

}  // namespace minisgl
