// The parts of a tokenizer.json other than the model: each object there becomes one of ours. What
// is not known is an error that names it.
#pragma once

#include <functional>

#include "tokenizer/decoder.h"
#include "tokenizer/json_node.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/pre_tokenizer.h"

namespace minisgl {

std::unique_ptr<Normalizer> read_normalizer(const JsonNode& node);

// True where the last step, and only that, writes bytes in the byte-level alphabet: then the model
// may take the bytes themselves.
bool ends_in_byte_level(const JsonNode& node);
// raw_bytes: leave that last step's writing out.
std::unique_ptr<PreTokenizer> read_pre_tokenizer(const JsonNode& node, bool raw_bytes);

std::vector<std::unique_ptr<DecodeStep>> read_decoder(const JsonNode& node);

// What a post-processor puts around a text.
struct Surround {
  std::vector<int32_t> prefix, suffix;
};
// token_exists: whether an id belongs to a token.
Surround read_post_processor(const JsonNode& node,
                             const std::function<bool(int64_t)>& token_exists);

}  // namespace minisgl
