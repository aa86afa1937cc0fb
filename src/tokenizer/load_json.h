// How the loaders of Hugging Face's files share their work.
#pragma once

#include "tokenizer/pipeline.h"
#include "tokenizer/tokenizer_config.h"

namespace minisgl {

// Marks the tokens that the config names as special, adds those that only it has, and fills
// parts.info except adds_bos and adds_eos.
void apply_config(const TokenizerConfig& config, TokenizerParts& parts);

// as_llama: use the parts of Hugging Face's LlamaTokenizer instead of the file's own normalizer,
// pre-tokenizer and decoder.
std::unique_ptr<Tokenizer> build_json_tokenizer(std::string_view json,
                                                const TokenizerConfig& config, bool as_llama,
                                                std::string_view name);
std::unique_ptr<Tokenizer> build_sentencepiece_tokenizer(std::string_view model,
                                                         const TokenizerConfig& config,
                                                         std::string_view name);

}  // namespace minisgl
