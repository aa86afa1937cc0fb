// The rules by which byte-level tokenizers inside GGUF files cut text, by the name that
// tokenizer.ggml.pre gives.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "tokenizer/pre_tokenizer.h"

namespace minisgl {

struct GgufPre {
  std::span<const std::string_view> names;
  std::span<const std::string_view> regexes;  // each cuts the pieces of the one before
  bool ignore_merges = false;
  bool adds_bos = false;  // where the file does not say
  bool nfc = false;
};

// Errors: kUnsupported, listing the known names.
const GgufPre& find_gguf_pre(std::string_view name, std::string_view file);
std::unique_ptr<PreTokenizer> make_gguf_pre_tokenizer(const GgufPre& pre, bool add_space_prefix);

}  // namespace minisgl
