// A tokenizer put together from its parts: added tokens, normalizer, pre-tokenizer, model, decoder.
#pragma once

#include "tokenizer/added_tokens.h"
#include "tokenizer/decoder.h"
#include "tokenizer/model.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocab.h"

namespace minisgl {

// What a loader fills. Everything is owned; the model refers to the vocabulary.
struct TokenizerParts {
  std::unique_ptr<Vocab> vocab;  // of the model; the added tokens go in as well
  std::unique_ptr<TokenModel> model;
  std::unique_ptr<Normalizer> normalizer;       // may be null
  std::unique_ptr<PreTokenizer> pre_tokenizer;  // may be null: the text is one word
  std::vector<std::unique_ptr<DecodeStep>> decoder;
  std::vector<AddedToken> added_tokens;
  std::vector<int32_t> prefix, suffix;  // put around the text with add_special
  TokenizerInfo info;                   // bos and eos are already in prefix and suffix
};

// Errors: kBadFile, naming `name`, when an added token's id belongs to another text.
std::unique_ptr<Tokenizer> make_pipeline_tokenizer(TokenizerParts parts, std::string_view name);

}  // namespace minisgl
