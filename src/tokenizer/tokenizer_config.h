// tokenizer_config.json: names of the special tokens, flags of added tokens, chat templates.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/added_tokens.h"

namespace minisgl {

struct TokenizerConfig {
  std::string bos_token, eos_token, pad_token, unk_token;  // empty: not named
  std::vector<AddedToken> added_tokens;                    // added_tokens_decoder
  std::vector<std::string> extra_special_tokens;
  std::optional<bool> add_bos_token, add_eos_token;
  bool add_prefix_space = true;
  bool legacy = false;
  std::string tokenizer_class;
  std::optional<std::string> chat_template;
  std::vector<std::pair<std::string, std::string>> named_templates;
};

// json: may be empty. Errors: kBadFile, naming `name`.
TokenizerConfig parse_tokenizer_config(std::string_view json, std::string_view name);

}  // namespace minisgl
