// SentencePiece's BPE: no list of merges, but a score for every piece. Two neighbours merge when
// their joined text is a piece, the highest score first. GGUF kind "llama", tokenizer.model.
#pragma once

#include <memory>
#include <vector>

#include "tokenizer/model.h"
#include "tokenizer/vocab.h"

namespace minisgl {

// vocab: must live as long as the model. scores: one an id, finite.
// mergeable: one an id; control, unknown and byte pieces are not, whatever their text is.
// A character that is no piece becomes its <0xXX> bytes, or unk_id where these are missing, or
// nothing when that is -1.
std::unique_ptr<TokenModel> make_score_bpe(const Vocab& vocab, const std::vector<float>& scores,
                                           const std::vector<bool>& mergeable, int32_t unk_id);

}  // namespace minisgl
