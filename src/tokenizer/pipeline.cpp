#include "tokenizer/pipeline.h"

#include <unordered_map>

#include "tokenizer/utf8.h"
#include "tokenizer/word_cache.h"
#include "utils/error.h"

namespace minisgl {
namespace {

constexpr size_t kMaxTextBytes = size_t{1} << 30;

class PipelineTokenizer : public Tokenizer {
 public:
  PipelineTokenizer(TokenizerParts parts, std::string_view name) : parts_(std::move(parts)) {
    info_ = std::move(parts_.info);
    for (const AddedToken& token : parts_.added_tokens) register_added(token, name);
    for (const AddedToken& token : parts_.added_tokens) add_to_trie(token);
  }

  std::vector<int32_t> encode(std::string_view text, EncodeOptions options) const override;
  std::unique_ptr<DecodeStream> new_stream(DecodeOptions options) const override;
  std::string token_bytes(int32_t id) const override {
    std::string text(decoded_text(id));
    for (const auto& step : parts_.decoder) text = step->mid_text(std::move(text));
    return text;
  }

  std::string_view token_text(int32_t id) const override { return parts_.vocab->token(id); }
  int32_t token_to_id(std::string_view token) const override { return parts_.vocab->find(token); }
  int32_t vocab_size() const override { return parts_.vocab->size(); }
  bool is_special(int32_t id) const override {
    return id >= 0 && static_cast<size_t>(id) < special_.size() &&
           special_[static_cast<size_t>(id)];
  }

 private:
  class Run;
  class Stream;

  void register_added(const AddedToken& token, std::string_view name) {
    Vocab& vocab = *parts_.vocab;
    if (!vocab.contains(token.id)) {
      vocab.add(token.content, token.id);
    } else if (vocab.token(token.id) != token.content) {
      throw_error(ErrorKind::kBadFile,
                  "{}: added token '{}' has id {}, which is '{}' in the vocabulary", name,
                  token.content, token.id, vocab.token(token.id));
    }
    const auto index = static_cast<size_t>(token.id);
    if (special_.size() <= index) special_.resize(index + 1);
    special_[index] = token.special;
  }

  void add_to_trie(const AddedToken& token) {
    if (!token.normalized || !parts_.normalizer) {
      (token.normalized ? normalized_tokens_ : raw_tokens_).add(token.content, token);
      return;
    }
    RegexScratch scratch;
    std::string content = token.content;
    parts_.normalizer->apply(content, scratch);
    normalized_tokens_.add(content, token);
    if (content != token.content) normalized_texts_[token.id] = std::move(content);
  }

  // What the decoder gets: of a normalized added token its normalized text, as it stood in the
  // text.
  std::string_view decoded_text(int32_t id) const {
    const auto found = normalized_texts_.find(id);
    return found != normalized_texts_.end() ? found->second : parts_.vocab->token(id);
  }

  TokenizerParts parts_;
  AddedTokens raw_tokens_, normalized_tokens_;
  std::unordered_map<int32_t, std::string> normalized_texts_;  // where they differ
  std::vector<bool> special_;                                  // by id
};

// One encode() call: takes the words from the pre-tokenizer and has the model encode them.
class PipelineTokenizer::Run : public PieceSink {
 public:
  Run(const PipelineTokenizer& tokenizer, size_t text_bytes, std::vector<int32_t>& ids)
      : parts_(tokenizer.parts_), tokenizer_(tokenizer), ids_(ids), cache_(text_bytes) {}

  void encode(std::string_view text, bool parse_special) {
    std::vector<Section> sections;
    tokenizer_.raw_tokens_.split(text, parse_special, sections);
    for (const Section& section : sections) {
      if (section.id >= 0) {
        ids_.push_back(section.id);
      } else {
        encode_raw(text.substr(section.begin, section.end - section.begin), section.begin == 0,
                   parse_special);
      }
    }
  }

  void take(Piece word) override {
    cache_.append(word.text, ids_, [&] { parts_.model->encode(word.text, ids_, model_scratch_); });
  }

 private:
  void encode_raw(std::string_view text, bool at_start, bool parse_special) {
    std::string normalized;
    if (parts_.normalizer) {
      normalized = text;
      parts_.normalizer->apply(normalized, regex_scratch_);
      text = normalized;
    }
    std::vector<Section> sections;
    tokenizer_.normalized_tokens_.split(text, parse_special, sections);
    for (const Section& section : sections) {
      if (section.id >= 0) {
        ids_.push_back(section.id);
        continue;
      }
      const Piece piece{text.substr(section.begin, section.end - section.begin),
                        at_start && section.begin == 0};
      if (parts_.pre_tokenizer) {
        parts_.pre_tokenizer->split(piece, *this, regex_scratch_);
      } else {
        take(piece);
      }
    }
  }

  const TokenizerParts& parts_;
  const PipelineTokenizer& tokenizer_;
  std::vector<int32_t>& ids_;
  WordCache cache_;
  RegexScratch regex_scratch_;
  ModelScratch model_scratch_;
};

std::vector<int32_t> PipelineTokenizer::encode(std::string_view text, EncodeOptions options) const {
  if (text.size() > kMaxTextBytes) {
    throw_error(ErrorKind::kInvalidArgument, "a text of {} bytes; at most {} can be tokenized",
                text.size(), kMaxTextBytes);
  }
  std::string repaired;
  if (!is_valid_utf8(text)) text = repaired = to_valid_utf8(text);
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 3 + 4);
  if (options.add_special) ids = parts_.prefix;
  Run(*this, text.size(), ids).encode(text, options.parse_special);
  if (options.add_special) ids.insert(ids.end(), parts_.suffix.begin(), parts_.suffix.end());
  return ids;
}

class PipelineTokenizer::Stream : public DecodeStream {
 public:
  Stream(const PipelineTokenizer& tokenizer, DecodeOptions options)
      : tokenizer_(tokenizer), options_(options) {
    const auto& steps = tokenizer.parts_.decoder;
    DecodeStage* next = &end_;
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
      stages_.push_back((*step)->make_stage(next));
      next = stages_.back().get();
    }
    first_ = next;
  }

  void push(int32_t id, std::string& text) override {
    if (options_.skip_special && tokenizer_.is_special(id)) return;
    if (!tokenizer_.parts_.vocab->contains(id)) return;
    end_.out = &text;
    first_->take(tokenizer_.decoded_text(id));
  }
  void finish(std::string& text) override {
    end_.out = &text;
    // From the first to the last: each may still send something to the next.
    for (auto stage = stages_.rbegin(); stage != stages_.rend(); ++stage) (*stage)->finish();
  }

 private:
  struct End : DecodeStage {
    End() : DecodeStage(nullptr) {}
    void take(std::string_view text) override { out->append(text); }
    std::string* out = nullptr;
  };

  const PipelineTokenizer& tokenizer_;
  DecodeOptions options_;
  End end_;
  std::vector<std::unique_ptr<DecodeStage>> stages_;  // the last first
  DecodeStage* first_ = nullptr;
};

std::unique_ptr<DecodeStream> PipelineTokenizer::new_stream(DecodeOptions options) const {
  return std::make_unique<Stream>(*this, options);
}

}  // namespace

std::unique_ptr<Tokenizer> make_pipeline_tokenizer(TokenizerParts parts, std::string_view name) {
  return std::make_unique<PipelineTokenizer>(std::move(parts), name);
}

}  // namespace minisgl
