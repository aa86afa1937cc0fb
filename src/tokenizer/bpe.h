// Byte-pair encoding (Sennrich et al. 2016) with a list of merges, as in tokenizer.json and in GGUF
// files of kind gpt2.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "tokenizer/model.h"
#include "tokenizer/vocab.h"

namespace minisgl {

struct BpeOptions {
  bool byte_level = false;     // words are raw bytes, the vocabulary is written in the alphabet
  bool ignore_merges = false;  // a word that is a token is that token, whatever the merges say
  bool byte_fallback = false;  // unknown characters become <0xXX> tokens
  bool fuse_unk = false;       // neighbouring unknown characters become one unk
  int32_t unk_id = -1;         // -1: unknown characters vanish
};

// The first merge has the lowest rank. vocab: must live as long as the model.
// Errors: kBadFile when a merge names a token that is not in the vocabulary.
std::unique_ptr<TokenModel> make_bpe(
    const Vocab& vocab, std::span<const std::pair<std::string_view, std::string_view>> merges,
    BpeOptions options);

// The ids of <0x00> … <0xFF>; -1 where there is none.
std::array<int32_t, 256> byte_token_ids(const Vocab& vocab);
// The byte of a token named <0xXX>, or -1.
int byte_of_token(std::string_view token);

}  // namespace minisgl
