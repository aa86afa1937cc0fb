// tokenizer.json, the file of Hugging Face's tokenizers library.
#include "tokenizer/load_json.h"

#include <algorithm>
#include <map>

#include "tokenizer/bpe.h"
#include "tokenizer/json_parts.h"
#include "tokenizer/unigram.h"
#include "utils/error.h"
#include "utils/quote.h"

namespace minisgl {
namespace {

constexpr const char* kSpaceMark = "\xE2\x96\x81";

int32_t read_id(const JsonNode& node) {
  const int64_t id = node.as_integer();
  if (id < 0 || id > kMaxTokenId)
    node.fail_expected(fmt::format("an id from 0 to {}", kMaxTokenId));
  return static_cast<int32_t>(id);
}

// {"the": 5, …}
void read_bpe_vocab(const JsonNode& node, Vocab& vocab) {
  const simdjson::dom::object entries = node.as_object();
  vocab.reserve(entries.size());
  for (const auto& [text, value] : entries) {
    const int32_t id = read_id(JsonNode(value, node.path()));
    if (vocab.contains(id) || vocab.find(text) >= 0) {
      throw_error(ErrorKind::kBadFile, "{}: token {} with id {} is there twice", node.path(),
                  quote(text), id);
    }
    vocab.add(text, id);
  }
}

using MergeTexts = std::vector<std::pair<std::string_view, std::string_view>>;

// ["a b", …] or [["a", "b"], …]
MergeTexts read_merges(const JsonNode& node) {
  MergeTexts merges;
  merges.reserve(node.as_array().size());
  for (const simdjson::dom::element element : node.as_array()) {
    const JsonNode line(element, node.path());
    if (line.is_string()) {
      const std::string_view text = line.as_string();
      const size_t space = text.find(' ');
      if (space == 0 || space == std::string_view::npos || space + 1 == text.size() ||
          text.find(' ', space + 1) != std::string_view::npos) {
        line.fail_expected("a merge of two tokens with a space between");
      }
      merges.emplace_back(text.substr(0, space), text.substr(space + 1));
      continue;
    }
    std::string_view left, right;
    const simdjson::dom::array pair = line.as_array();
    if (pair.size() != 2 || pair.at(0).get(left) != simdjson::SUCCESS ||
        pair.at(1).get(right) != simdjson::SUCCESS) {
      line.fail_expected("a merge of two tokens");
    }
    merges.emplace_back(left, right);
  }
  return merges;
}

// Parts of BPE that no decoder-only model uses.
void refuse_unused_bpe_options(const JsonNode& model) {
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!model.string_or(key, "").empty()) model.at(key).fail_unknown(key, "null");
  }
  const auto dropout = model.find("dropout");
  if (dropout && dropout->as_number() != 0) dropout->fail_unknown("dropout", "null");
}

void read_bpe(const JsonNode& model, bool raw_bytes, bool as_llama, TokenizerParts& parts) {
  refuse_unused_bpe_options(model);
  read_bpe_vocab(model.at("vocab"), *parts.vocab);
  BpeOptions options;
  options.byte_level = raw_bytes;
  options.ignore_merges = model.bool_or("ignore_merges", false);
  options.byte_fallback = as_llama || model.bool_or("byte_fallback", false);
  options.fuse_unk = as_llama || model.bool_or("fuse_unk", false);
  if (const auto unk = model.find("unk_token")) {
    options.unk_id = parts.vocab->find(unk->as_string());
    if (options.unk_id < 0 && !raw_bytes) unk->fail_expected("a token of the vocabulary");
  }
  parts.info.unk_id = options.unk_id;
  parts.model = make_bpe(*parts.vocab, read_merges(model.at("merges")), options);
}

// [["▁the", -3.2], …]
void read_unigram(const JsonNode& model, TokenizerParts& parts) {
  const JsonNode pieces = model.at("vocab");
  std::vector<double> scores;
  for (const simdjson::dom::element element : pieces.as_array()) {
    std::string_view text;
    double score = 0;
    if (element.at(0).get(text) != simdjson::SUCCESS ||
        element.at(1).get(score) != simdjson::SUCCESS) {
      pieces.fail_expected("pairs of a piece and its score");
    }
    if (scores.size() > static_cast<size_t>(kMaxTokenId)) pieces.fail_expected("fewer pieces");
    parts.vocab->add(text, static_cast<int32_t>(scores.size()));
    scores.push_back(score);
  }
  UnigramOptions options;
  options.byte_fallback = model.bool_or("byte_fallback", false);
  if (const auto unk = model.find("unk_id")) {
    options.unk_id = read_id(*unk);
    if (!parts.vocab->contains(options.unk_id)) unk->fail_expected("the id of a piece");
  }
  parts.info.unk_id = options.unk_id;
  const std::vector<bool> usable(scores.size(), true);
  parts.model = make_unigram(*parts.vocab, std::move(scores), usable, options);
}

void read_model(const JsonNode& model, bool raw_bytes, bool as_llama, TokenizerParts& parts) {
  // Files from before 2020 do not say; they are BPE when they have merges.
  const std::string_view type =
      model.string_or("type", model.find("merges") ? "BPE" : "(none given)");
  if (type == "BPE") {
    read_bpe(model, raw_bytes, as_llama, parts);
  } else if (type == "Unigram") {
    read_unigram(model, parts);
  } else {
    model.fail_unknown(type, "BPE, Unigram");
  }
}

AddedToken read_added_token(const JsonNode& node) {
  AddedToken token;
  token.id = read_id(node.at("id"));
  token.content = node.at("content").as_string();
  token.special = node.bool_or("special", false);
  token.single_word = node.bool_or("single_word", false);
  token.lstrip = node.bool_or("lstrip", false);
  token.rstrip = node.bool_or("rstrip", false);
  token.normalized = node.bool_or("normalized", !token.special);
  return token;
}

// What Hugging Face's LlamaTokenizer puts in place of the file's own parts.
void use_llama_parts(const TokenizerConfig& config, TokenizerParts& parts) {
  const PrependScheme scheme = !config.add_prefix_space ? PrependScheme::kNever
                               : config.legacy          ? PrependScheme::kAlways
                                                        : PrependScheme::kFirst;
  parts.pre_tokenizer = make_metaspace(kSpaceMark, scheme, false);
  parts.decoder.push_back(make_replace_decoder(kSpaceMark, " "));
  parts.decoder.push_back(make_byte_fallback_decoder());
  if (config.add_prefix_space) parts.decoder.push_back(make_strip_decoder(" ", 1, 0, true));
}

void read_text_parts(const JsonNode& root, bool raw_bytes, TokenizerParts& parts) {
  if (const auto node = root.find("normalizer")) parts.normalizer = read_normalizer(*node);
  if (const auto node = root.find("pre_tokenizer")) {
    parts.pre_tokenizer = read_pre_tokenizer(*node, raw_bytes);
  }
  if (const auto node = root.find("decoder")) {
    parts.decoder = read_decoder(*node);
  } else {
    parts.decoder.push_back(make_space_joiner());
  }
}

}  // namespace

void apply_config(const TokenizerConfig& config, TokenizerParts& parts) {
  std::map<std::string, int32_t, std::less<>> ids;  // of the added tokens
  for (const AddedToken& token : parts.added_tokens) ids.emplace(token.content, token.id);
  const auto find = [&](const std::string& text) {
    const auto it = ids.find(text);
    return it != ids.end() ? it->second : text.empty() ? -1 : parts.vocab->find(text);
  };
  const auto put = [&](const AddedToken& token) {
    const auto same = [&](const AddedToken& other) { return other.content == token.content; };
    const auto it = std::find_if(parts.added_tokens.begin(), parts.added_tokens.end(), same);
    if (it == parts.added_tokens.end()) {
      parts.added_tokens.push_back(token);
      ids.emplace(token.content, token.id);
    } else if (it->id == token.id) {
      *it = token;
    }
  };
  for (const AddedToken& token : config.added_tokens) put(token);
  const auto mark_special = [&](const std::string& text) {
    const int32_t id = find(text);
    if (id < 0) return id;
    const auto it = std::find_if(parts.added_tokens.begin(), parts.added_tokens.end(),
                                 [&](const AddedToken& other) { return other.id == id; });
    if (it != parts.added_tokens.end()) {
      it->special = true;
    } else {
      AddedToken token;
      token.content = text;
      token.id = id;
      token.special = true;
      put(token);
    }
    return id;
  };
  TokenizerInfo& info = parts.info;
  if (const int32_t id = mark_special(config.bos_token); id >= 0) info.bos_id = id;
  if (const int32_t id = mark_special(config.eos_token); id >= 0) info.eos_id = id;
  if (const int32_t id = mark_special(config.pad_token); id >= 0) info.pad_id = id;
  if (const int32_t id = mark_special(config.unk_token); id >= 0) info.unk_id = id;
  for (const std::string& text : config.extra_special_tokens) mark_special(text);
  if (info.eos_id >= 0 && info.end_ids.empty()) info.end_ids = {info.eos_id};
  info.chat_template = config.chat_template;
  info.named_templates = config.named_templates;
}

std::unique_ptr<Tokenizer> build_json_tokenizer(std::string_view json,
                                                const TokenizerConfig& config, bool as_llama,
                                                std::string_view name) {
  simdjson::dom::parser parser;
  simdjson::dom::element document;
  if (const auto error = parser.parse(json.data(), json.size()).get(document);
      error != simdjson::SUCCESS) {
    throw_error(ErrorKind::kBadFile, "{}: not valid JSON: {}", name,
                simdjson::error_message(error));
  }
  const JsonNode root(document, std::string(name));
  if (!root.is_object()) root.fail_expected("an object");

  TokenizerParts parts;
  parts.vocab = std::make_unique<Vocab>();
  const auto pre_tokenizer = root.find("pre_tokenizer");
  const bool raw_bytes = !as_llama && pre_tokenizer && ends_in_byte_level(*pre_tokenizer) &&
                         root.at("model").string_or("type", "BPE") == "BPE";
  read_model(root.at("model"), raw_bytes, as_llama, parts);
  if (as_llama) {
    use_llama_parts(config, parts);
  } else {
    read_text_parts(root, raw_bytes, parts);
  }
  if (const auto added = root.find("added_tokens")) {
    for (const simdjson::dom::element token : added->as_array()) {
      parts.added_tokens.push_back(read_added_token(JsonNode(token, added->path())));
    }
  }
  apply_config(config, parts);

  if (const auto node = root.find("post_processor")) {
    const auto exists = [&](int64_t id) {
      const auto is_it = [&](const AddedToken& token) { return token.id == id; };
      return (id >= 0 && id <= kMaxTokenId && parts.vocab->contains(static_cast<int32_t>(id))) ||
             std::any_of(parts.added_tokens.begin(), parts.added_tokens.end(), is_it);
    };
    Surround around = read_post_processor(*node, exists);
    parts.prefix = std::move(around.prefix);
    parts.suffix = std::move(around.suffix);
  }
  const auto begins_with = [](const std::vector<int32_t>& ids, int32_t id) {
    return id >= 0 && !ids.empty() && ids.front() == id;
  };
  parts.info.adds_bos = begins_with(parts.prefix, parts.info.bos_id);
  parts.info.adds_eos = begins_with(parts.suffix, parts.info.eos_id);
  return make_pipeline_tokenizer(std::move(parts), name);
}

std::unique_ptr<Tokenizer> make_json_tokenizer(std::string_view json, std::string_view config_json,
                                               std::string_view name) {
  const TokenizerConfig config =
      parse_tokenizer_config(config_json, std::string(name) + ": tokenizer_config.json");
  return build_json_tokenizer(json, config, /*as_llama=*/false, name);
}

}  // namespace minisgl
