// The tokenizer inside a GGUF file: kinds "gpt2" (byte-level BPE, cut by the rules that
// tokenizer.ggml.pre names) and "llama" (SentencePiece).
#include <algorithm>
#include <cmath>

#include "tokenizer/bpe.h"
#include "tokenizer/gguf_pre.h"
#include "tokenizer/pipeline.h"
#include "tokenizer/sentencepiece.h"
#include "tokenizer/utf8.h"
#include "utils/error.h"
#include "utils/gguf.h"
#include "utils/quote.h"

namespace minisgl {
namespace {

// The values of tokenizer.ggml.token_type are SentencePiece's.
std::vector<PieceType> piece_types(const GgufFile& file, size_t count) {
  std::vector<PieceType> types(count, PieceType::kNormal);
  const auto values = file.integers("tokenizer.ggml.token_type");
  if (!values) return types;
  if (values->size() != count) {
    throw_error(ErrorKind::kBadFile, "{}: tokenizer.ggml.token_type has {} entries for {} tokens",
                file.path(), values->size(), count);
  }
  for (size_t i = 0; i < count; ++i) {
    const int64_t value = (*values)[i];
    if (value < 0 || value > 6) {
      throw_error(ErrorKind::kBadFile, "{}: token {} has type {}; expected 0 to 6", file.path(), i,
                  value);
    }
    types[i] = static_cast<PieceType>(value);
  }
  return types;
}

int32_t token_id(const GgufFile& file, std::string_view key, size_t count) {
  const auto value = file.integer(key);
  if (!value) return -1;
  // Converters write such ids for tokens that the model does not have.
  if (*value == -1 || *value == 0xFFFFFFFF) return -1;
  if (*value < 0 || *value >= static_cast<int64_t>(count)) {
    throw_error(ErrorKind::kBadFile, "{}: {} is {}, but there are {} tokens", file.path(), key,
                *value, count);
  }
  return static_cast<int32_t>(*value);
}

// Files name one or two ids that end a turn and leave the others to their texts.
std::vector<int32_t> end_ids(const GgufFile& file, const std::vector<std::string_view>& tokens,
                             const std::vector<PieceType>& types, int32_t eos_id) {
  constexpr std::string_view kEndTexts[] = {"<|im_end|>",    "<|eot_id|>",    "<|eom_id|>",
                                            "<end_of_turn>", "<|endoftext|>", "<|return|>",
                                            "<|call|>",      "<|endofturn|>", "<|end_of_text|>"};
  std::vector<int32_t> ids;
  const auto add = [&](int32_t id) {
    if (id >= 0 && std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  };
  add(eos_id);
  add(token_id(file, "tokenizer.ggml.eot_token_id", tokens.size()));
  add(token_id(file, "tokenizer.ggml.eom_token_id", tokens.size()));
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (types[i] != PieceType::kControl) continue;
    if (std::find(std::begin(kEndTexts), std::end(kEndTexts), tokens[i]) != std::end(kEndTexts)) {
      add(static_cast<int32_t>(i));
    }
  }
  return ids;
}

TokenizerInfo read_info(const GgufFile& file, const std::vector<std::string_view>& tokens,
                        const std::vector<PieceType>& types, bool adds_bos) {
  TokenizerInfo info;
  info.bos_id = token_id(file, "tokenizer.ggml.bos_token_id", tokens.size());
  info.eos_id = token_id(file, "tokenizer.ggml.eos_token_id", tokens.size());
  info.pad_id = token_id(file, "tokenizer.ggml.padding_token_id", tokens.size());
  info.unk_id = token_id(file, "tokenizer.ggml.unknown_token_id", tokens.size());
  info.end_ids = end_ids(file, tokens, types, info.eos_id);
  info.adds_bos =
      file.boolean("tokenizer.ggml.add_bos_token").value_or(adds_bos) && info.bos_id >= 0;
  info.adds_eos = file.boolean("tokenizer.ggml.add_eos_token").value_or(false) && info.eos_id >= 0;
  if (const auto text = file.string("tokenizer.chat_template")) {
    info.chat_template = std::string(*text);
  }
  constexpr std::string_view kNamed = "tokenizer.chat_template.";
  for (const auto& [key, value] : file.metadata()) {
    if (key.starts_with(kNamed) && value.type == GgufType::kString) {
      info.named_templates.emplace_back(key.substr(kNamed.size()), *file.string(key));
    }
  }
  return info;
}

using MergeTexts = std::vector<std::pair<std::string_view, std::string_view>>;

MergeTexts read_merges(const GgufFile& file) {
  const auto lines = file.strings("tokenizer.ggml.merges");
  if (!lines) {
    throw_error(ErrorKind::kBadFile, "{}: tokenizer.ggml.merges is missing", file.path());
  }
  MergeTexts merges;
  merges.reserve(lines->size());
  for (const std::string_view line : *lines) {
    const size_t space = line.find(' ', 1);  // the left token may be a space itself
    if (space == std::string_view::npos || space + 1 == line.size()) {
      throw_error(ErrorKind::kBadFile, "{}: merge {} is {}; expected two tokens", file.path(),
                  merges.size(), quote(line));
    }
    merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return merges;
}

std::unique_ptr<Tokenizer> make_gpt2_kind(const GgufFile& file,
                                          const std::vector<std::string_view>& tokens,
                                          const std::vector<PieceType>& types) {
  const GgufPre& pre =
      find_gguf_pre(file.string("tokenizer.ggml.pre").value_or("default"), file.path());
  TokenizerParts parts;
  parts.info = read_info(file, tokens, types, pre.adds_bos);
  parts.vocab = std::make_unique<Vocab>();
  parts.vocab->reserve(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    parts.vocab->add(to_valid_utf8(tokens[i]), static_cast<int32_t>(i));
  }
  parts.added_tokens = added_tokens_of_pieces(*parts.vocab, types);
  parts.model = make_bpe(*parts.vocab, read_merges(file),
                         {.byte_level = true, .ignore_merges = pre.ignore_merges});
  if (pre.nfc) parts.normalizer = make_unicode_normalizer(NormalForm::kNfc);
  parts.pre_tokenizer =
      make_gguf_pre_tokenizer(pre, file.boolean("tokenizer.ggml.add_space_prefix").value_or(false));
  parts.decoder.push_back(make_byte_level_decoder());
  put_bos_and_eos_around(parts);
  return make_pipeline_tokenizer(std::move(parts), file.path());
}

std::unique_ptr<Tokenizer> make_llama_kind(const GgufFile& file,
                                           const std::vector<std::string_view>& tokens,
                                           std::vector<PieceType> types) {
  SentencePieceSpec spec;
  spec.info = read_info(file, tokens, types, true);
  const auto scores = file.numbers("tokenizer.ggml.scores");
  if (!scores || scores->size() != tokens.size()) {
    throw_error(ErrorKind::kBadFile, "{}: tokenizer.ggml.scores has {} entries for {} tokens",
                file.path(), scores ? scores->size() : 0, tokens.size());
  }
  for (size_t i = 0; i < tokens.size(); ++i) {
    spec.pieces.push_back({to_valid_utf8(tokens[i]), static_cast<float>((*scores)[i]), types[i]});
  }
  spec.add_dummy_prefix = file.boolean("tokenizer.ggml.add_space_prefix").value_or(true);
  TokenizerParts parts = make_sentencepiece_parts(std::move(spec), file.path());
  put_bos_and_eos_around(parts);
  return make_pipeline_tokenizer(std::move(parts), file.path());
}

}  // namespace

std::unique_ptr<Tokenizer> make_gguf_tokenizer(const GgufFile& file) {
  const auto kind = file.string("tokenizer.ggml.model");
  const auto tokens = file.strings("tokenizer.ggml.tokens");
  if (!kind || !tokens) {
    throw_error(ErrorKind::kBadFile,
                "{}: no tokenizer inside (tokenizer.ggml.{} is missing); give one with the model",
                file.path(), kind ? "tokens" : "model");
  }
  if (tokens->empty() || tokens->size() > static_cast<size_t>(kMaxTokenId)) {
    throw_error(ErrorKind::kBadFile, "{}: a vocabulary of {} tokens; expected 1 to {}", file.path(),
                tokens->size(), kMaxTokenId);
  }
  std::vector<PieceType> types = piece_types(file, tokens->size());
  if (*kind == "gpt2") return make_gpt2_kind(file, *tokens, types);
  if (*kind == "llama") return make_llama_kind(file, *tokens, std::move(types));
  throw_error(ErrorKind::kUnsupported,
              "{}: tokenizer kind {} is not known; known are gpt2 and llama", file.path(),
              quote(*kind));
}

}  // namespace minisgl
