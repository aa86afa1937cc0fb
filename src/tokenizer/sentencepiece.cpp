#include "tokenizer/sentencepiece.h"

#include <cmath>

#include "tokenizer/charsmap.h"
#include "tokenizer/score_bpe.h"
#include "tokenizer/unigram.h"
#include "utils/error.h"
#include "utils/quote.h"

namespace minisgl {
namespace {

constexpr const char* kSpaceMark = "\xE2\x96\x81";  // ▁, U+2581

std::unique_ptr<Normalizer> make_spec_normalizer(const SentencePieceSpec& spec,
                                                 std::string_view name) {
  std::vector<std::unique_ptr<Normalizer>> steps;
  if (!spec.charsmap.empty()) {
    steps.push_back(make_charsmap_normalizer(spec.charsmap, CharsmapReading::kSentencePiece, name));
  }
  if (spec.remove_extra_whitespaces) steps.push_back(make_collapse_spaces());
  if (spec.add_dummy_prefix) steps.push_back(make_prepend(kSpaceMark));
  steps.push_back(make_replace(" ", kSpaceMark));
  if (spec.remove_extra_whitespaces) steps.push_back(make_strip_right(kSpaceMark));
  return make_normalizer_sequence(std::move(steps));
}

bool is_text(PieceType type) {
  return type == PieceType::kNormal || type == PieceType::kUserDefined ||
         type == PieceType::kUndefined;
}

}  // namespace

std::vector<AddedToken> added_tokens_of_pieces(const Vocab& vocab,
                                               const std::vector<PieceType>& types) {
  std::vector<AddedToken> added;
  for (size_t i = 0; i < types.size(); ++i) {
    const bool special = types[i] == PieceType::kControl || types[i] == PieceType::kUnknown;
    if (!special && types[i] != PieceType::kUserDefined) continue;
    AddedToken token;
    token.id = static_cast<int32_t>(i);
    token.content = vocab.token(token.id);
    token.special = special;
    added.push_back(std::move(token));
  }
  return added;
}

void put_bos_and_eos_around(TokenizerParts& parts) {
  if (parts.info.adds_bos) parts.prefix.push_back(parts.info.bos_id);
  if (parts.info.adds_eos) parts.suffix.push_back(parts.info.eos_id);
}

TokenizerParts make_sentencepiece_parts(SentencePieceSpec spec, std::string_view name) {
  const size_t count = spec.pieces.size();
  TokenizerParts parts;
  parts.vocab = std::make_unique<Vocab>();
  parts.vocab->reserve(count);
  std::vector<float> scores;
  std::vector<bool> usable;
  std::vector<PieceType> types;
  for (size_t i = 0; i < count; ++i) {
    const SentencePiece& piece = spec.pieces[i];
    if (!std::isfinite(piece.score)) {
      throw_error(ErrorKind::kBadFile, "{}: token {} ({}) has a score of {}; expected a number",
                  name, i, quote(piece.text), piece.score);
    }
    parts.vocab->add(piece.text, static_cast<int32_t>(i));
    scores.push_back(piece.score);
    usable.push_back(is_text(piece.type) && !piece.text.empty());
    types.push_back(piece.type);
    if (piece.type == PieceType::kUnknown && spec.info.unk_id < 0) {
      spec.info.unk_id = static_cast<int32_t>(i);
    }
  }
  parts.info = std::move(spec.info);
  parts.added_tokens = added_tokens_of_pieces(*parts.vocab, types);
  if (spec.unigram) {
    parts.model = make_unigram(*parts.vocab, std::vector<double>(scores.begin(), scores.end()),
                               usable, {parts.info.unk_id, spec.byte_fallback});
  } else {
    parts.model = make_score_bpe(*parts.vocab, scores, usable, parts.info.unk_id);
  }
  parts.normalizer = make_spec_normalizer(spec, name);
  parts.decoder.push_back(make_replace_decoder(kSpaceMark, " "));
  parts.decoder.push_back(make_byte_fallback_decoder());
  constexpr size_t kAll = 1 << 30;
  if (spec.remove_extra_whitespaces) {
    parts.decoder.push_back(make_strip_decoder(" ", kAll, 0, true));
  } else if (spec.add_dummy_prefix) {
    parts.decoder.push_back(make_strip_decoder(" ", 1, 0, true));
  }
  return parts;
}

}  // namespace minisgl
