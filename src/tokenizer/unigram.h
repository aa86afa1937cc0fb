// Unigram language model (Kudo 2018): the segmentation with the highest sum of log-probabilities,
// found by Viterbi's algorithm.
#pragma once

#include <memory>
#include <vector>

#include "tokenizer/model.h"
#include "tokenizer/vocab.h"

namespace minisgl {

struct UnigramOptions {
  int32_t unk_id = -1;         // -1: an unknown character is an error of the text
  bool byte_fallback = false;  // unknown stretches become <0xXX> tokens
};

// vocab: must live as long as the model. scores: log-probability by id, finite.
// usable: by id; pieces that are not can only come from elsewhere (control, bytes).
std::unique_ptr<TokenModel> make_unigram(const Vocab& vocab, std::vector<double> scores,
                                         const std::vector<bool>& usable, UnigramOptions options);

}  // namespace minisgl
