#include "tokenizer/json_parts.h"

#include "tokenizer/charsmap.h"
#include "tokenizer/utf8.h"
#include "utils/error.h"

namespace minisgl {
namespace {

constexpr int kMaxNesting = 16;

// Calls take(node) for each step of nested Sequences, in order. list_key: where a Sequence keeps
// its steps.
template <class F>
void each_step(const JsonNode& node, const char* list_key, F&& take, int depth = 0) {
  if (!node.is_object()) node.fail_expected("an object with a type");
  if (node.at("type").as_string() != "Sequence") {
    take(node);
    return;
  }
  if (depth >= kMaxNesting) node.fail_expected("Sequences nested at most 16 deep");
  const JsonNode list = node.at(list_key);
  int index = 0;
  for (const simdjson::dom::element step : list.as_array()) {
    each_step(JsonNode(step, list.path() + "[" + std::to_string(index++) + "]"), list_key, take,
              depth + 1);
  }
}

struct Pattern {
  bool is_regex = false;
  std::string text;
};

Pattern read_pattern(const JsonNode& node) {
  if (const auto regex = node.find("Regex")) return {true, std::string(regex->as_string())};
  const JsonNode text = node.at("String");
  if (text.as_string().empty()) text.fail_expected("a string that is not empty");
  return {false, std::string(text.as_string())};
}

// One character, e.g. the ▁ of Metaspace.
std::string read_character(const JsonNode& node) {
  const std::string_view text = node.as_string();
  if (text.empty() || utf8_length(text[0]) != text.size()) node.fail_expected("one character");
  return std::string(text);
}

// ---- normalizers

std::unique_ptr<Normalizer> read_bert_normalizer(const JsonNode& node) {
  BertNormalizerOptions options;
  options.clean_text = node.bool_or("clean_text", true);
  options.handle_chinese_chars = node.bool_or("handle_chinese_chars", true);
  options.lowercase = node.bool_or("lowercase", true);
  options.strip_accents = node.bool_or("strip_accents", options.lowercase);
  return make_bert_normalizer(options);
}

std::unique_ptr<Normalizer> read_replace(const JsonNode& node) {
  Pattern pattern = read_pattern(node.at("pattern"));
  std::string content(node.at("content").as_string());
  if (pattern.is_regex) {
    return make_regex_replace(Regex(pattern.text, node.path()), std::move(content));
  }
  return make_replace(std::move(pattern.text), std::move(content));
}

std::unique_ptr<Normalizer> read_precompiled(const JsonNode& node) {
  const JsonNode map = node.at("precompiled_charsmap");
  return make_charsmap_normalizer(decode_base64(map.as_string(), map.path()),
                                  CharsmapReading::kHuggingFace, map.path());
}

std::unique_ptr<Normalizer> read_one_normalizer(const JsonNode& node) {
  const std::string_view type = node.at("type").as_string();
  if (type == "NFC") return make_unicode_normalizer(NormalForm::kNfc);
  if (type == "NFD") return make_unicode_normalizer(NormalForm::kNfd);
  if (type == "NFKC") return make_unicode_normalizer(NormalForm::kNfkc);
  if (type == "NFKD") return make_unicode_normalizer(NormalForm::kNfkd);
  if (type == "Lowercase") return make_lowercase();
  if (type == "StripAccents") return make_strip_accents();
  if (type == "Strip") {
    return make_strip_spaces(node.bool_or("strip_left", true), node.bool_or("strip_right", true));
  }
  if (type == "Prepend") return make_prepend(std::string(node.at("prepend").as_string()));
  if (type == "Replace") return read_replace(node);
  if (type == "BertNormalizer") return read_bert_normalizer(node);
  if (type == "Precompiled") return read_precompiled(node);
  node.fail_unknown(type,
                    "NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Prepend, Replace, "
                    "BertNormalizer, Precompiled, Sequence");
}

// ---- pre-tokenizers

SplitBehavior read_behavior(const JsonNode& node, std::string_view otherwise) {
  const std::string_view name = node.string_or("behavior", otherwise);
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  node.fail_unknown(name, "Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous");
}

PrependScheme read_prepend_scheme(const JsonNode& node) {
  if (!node.find("prepend_scheme") && !node.bool_or("add_prefix_space", true)) {
    return PrependScheme::kNever;  // how older files say it
  }
  const std::string_view name = node.string_or("prepend_scheme", "always");
  if (name == "always") return PrependScheme::kAlways;
  if (name == "first") return PrependScheme::kFirst;
  if (name == "never") return PrependScheme::kNever;
  node.fail_unknown(name, "always, first, never");
}

// \w+|[^\w\s]+ as Rust's regex crate reads it, where joiners are word characters too.
constexpr std::string_view kWhitespaceRegex =
    R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d}]+)"
    R"(|[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d}\s]+)";

std::unique_ptr<PreTokenizer> read_split(const JsonNode& node) {
  Pattern pattern = read_pattern(node.at("pattern"));
  auto matcher = pattern.is_regex ? match_regex(Regex(pattern.text, node.path()))
                                  : match_string(std::move(pattern.text));
  return make_split(std::move(matcher), read_behavior(node, "Isolated"),
                    node.bool_or("invert", false));
}

std::unique_ptr<PreTokenizer> read_bert_pre_tokenizer() {
  std::vector<std::unique_ptr<PreTokenizer>> steps;
  steps.push_back(make_split(match_characters(is_space), SplitBehavior::kRemoved));
  steps.push_back(make_split(match_characters(is_punctuation), SplitBehavior::kIsolated));
  return make_pre_tokenizer_sequence(std::move(steps));
}

std::unique_ptr<PreTokenizer> read_one_pre_tokenizer(const JsonNode& node, bool raw_bytes) {
  const std::string_view type = node.at("type").as_string();
  if (type == "Split") return read_split(node);
  if (type == "ByteLevel") {
    return make_byte_level({.add_prefix_space = node.bool_or("add_prefix_space", true),
                            .use_regex = node.bool_or("use_regex", true),
                            .map_to_alphabet = !raw_bytes});
  }
  if (type == "Digits") {
    const bool individual = node.bool_or("individual_digits", false);
    return make_split(match_characters(is_numeric),
                      individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous);
  }
  if (type == "Punctuation") {
    return make_split(match_characters(is_punctuation), read_behavior(node, "Isolated"));
  }
  if (type == "Whitespace") {
    return make_split(match_regex(Regex(kWhitespaceRegex, type)), SplitBehavior::kRemoved, true);
  }
  if (type == "WhitespaceSplit") {
    return make_split(match_characters(is_space), SplitBehavior::kRemoved);
  }
  if (type == "CharDelimiterSplit") {
    return make_split(match_string(read_character(node.at("delimiter"))), SplitBehavior::kRemoved);
  }
  if (type == "BertPreTokenizer") return read_bert_pre_tokenizer();
  if (type == "Metaspace") {
    return make_metaspace(read_character(node.at("replacement")), read_prepend_scheme(node),
                          node.bool_or("split", true));
  }
  node.fail_unknown(type,
                    "Split, ByteLevel, Digits, Punctuation, Whitespace, WhitespaceSplit, "
                    "CharDelimiterSplit, BertPreTokenizer, Metaspace, Sequence");
}

// ---- decoders

// joined: the steps before have made one text of the tokens.
std::unique_ptr<DecodeStep> read_one_decoder(const JsonNode& node, bool joined) {
  const std::string_view type = node.at("type").as_string();
  if (type == "ByteLevel") return make_byte_level_decoder();
  if (type == "ByteFallback") return make_byte_fallback_decoder();
  if (type == "Replace") {
    Pattern pattern = read_pattern(node.at("pattern"));
    if (pattern.is_regex) node.fail_unknown("Regex", "String");
    if (joined && pattern.text.size() != utf8_length(pattern.text[0])) {
      node.fail_expected("a pattern of one character in a Replace behind Fuse");
    }
    return make_replace_decoder(std::move(pattern.text),
                                std::string(node.at("content").as_string()));
  }
  if (type == "Strip") {
    const int64_t left = node.integer_or("start", 0), right = node.integer_or("stop", 0);
    constexpr int64_t kMaxStrip = 1024;
    if (left < 0 || right < 0 || left > kMaxStrip || right > kMaxStrip) {
      node.fail_expected("start and stop from 0 to 1024");
    }
    return make_strip_decoder(read_character(node.at("content")), static_cast<size_t>(left),
                              static_cast<size_t>(right), joined);
  }
  if (type == "Metaspace") {
    return make_metaspace_decoder(read_character(node.at("replacement")),
                                  read_prepend_scheme(node) != PrependScheme::kNever);
  }
  node.fail_unknown(type, "ByteLevel, ByteFallback, Fuse, Replace, Strip, Metaspace, Sequence");
}

// ---- post-processors

int32_t checked_id(const JsonNode& node, const std::function<bool(int64_t)>& token_exists) {
  if (!token_exists(node.as_integer())) node.fail_expected("the id of a token");
  return static_cast<int32_t>(node.as_integer());
}

// {"single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}],
//  "special_tokens": {"<s>": {"ids": [1]}}}
Surround read_template(const JsonNode& node, const std::function<bool(int64_t)>& token_exists) {
  Surround around;
  bool text_seen = false;
  const JsonNode single = node.at("single");
  for (const simdjson::dom::element element : single.as_array()) {
    const JsonNode step(element, single.path());
    if (const auto special = step.find("SpecialToken")) {
      const JsonNode ids = node.at("special_tokens").at(special->at("id").as_string()).at("ids");
      for (const simdjson::dom::element id : ids.as_array()) {
        (text_seen ? around.suffix : around.prefix)
            .push_back(checked_id(JsonNode(id, ids.path()), token_exists));
      }
    } else if (step.find("Sequence") && !text_seen) {
      text_seen = true;
    } else {
      step.fail_expected("special tokens around one Sequence");
    }
  }
  if (!text_seen) single.fail_expected("a Sequence among the special tokens");
  return around;
}

// "cls": ["<s>", 0]
int32_t read_token_pair(const JsonNode& node, const std::function<bool(int64_t)>& token_exists) {
  simdjson::dom::element id;
  if (node.as_array().at(1).get(id) != simdjson::SUCCESS) node.fail_expected("a token and its id");
  return checked_id(JsonNode(id, node.path()), token_exists);
}

}  // namespace

std::unique_ptr<Normalizer> read_normalizer(const JsonNode& node) {
  std::vector<std::unique_ptr<Normalizer>> steps;
  each_step(node, "normalizers",
            [&](const JsonNode& step) { steps.push_back(read_one_normalizer(step)); });
  if (steps.empty()) return nullptr;
  return steps.size() == 1 ? std::move(steps[0]) : make_normalizer_sequence(std::move(steps));
}

bool ends_in_byte_level(const JsonNode& node) {
  int count = 0;
  bool last = false;
  each_step(node, "pretokenizers", [&](const JsonNode& step) {
    last = step.at("type").as_string() == "ByteLevel";
    count += last;
  });
  return last && count == 1;
}

std::unique_ptr<PreTokenizer> read_pre_tokenizer(const JsonNode& node, bool raw_bytes) {
  std::vector<std::unique_ptr<PreTokenizer>> steps;
  each_step(node, "pretokenizers", [&](const JsonNode& step) {
    steps.push_back(read_one_pre_tokenizer(step, raw_bytes));
  });
  if (steps.empty()) return nullptr;
  return steps.size() == 1 ? std::move(steps[0]) : make_pre_tokenizer_sequence(std::move(steps));
}

std::vector<std::unique_ptr<DecodeStep>> read_decoder(const JsonNode& node) {
  std::vector<std::unique_ptr<DecodeStep>> steps;
  bool joined = false;
  each_step(node, "decoders", [&](const JsonNode& step) {
    const std::string_view type = step.at("type").as_string();
    if (type != "Fuse") steps.push_back(read_one_decoder(step, joined));
    joined |= type == "Fuse" || type == "ByteLevel";
  });
  return steps;
}

Surround read_post_processor(const JsonNode& node,
                             const std::function<bool(int64_t)>& token_exists) {
  Surround all;
  each_step(node, "processors", [&](const JsonNode& step) {
    const std::string_view type = step.at("type").as_string();
    Surround around;
    if (type == "TemplateProcessing") {
      around = read_template(step, token_exists);
    } else if (type == "BertProcessing" || type == "RobertaProcessing") {
      around.prefix = {read_token_pair(step.at("cls"), token_exists)};
      around.suffix = {read_token_pair(step.at("sep"), token_exists)};
    } else if (type != "ByteLevel") {  // which only moves offsets
      step.fail_unknown(
          type, "TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel, Sequence");
    }
    all.prefix.insert(all.prefix.begin(), around.prefix.begin(), around.prefix.end());
    all.suffix.insert(all.suffix.end(), around.suffix.begin(), around.suffix.end());
  });
  return all;
}

}  // namespace minisgl
