// From token texts back to text, as a chain of steps that each work on a stream.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace minisgl {

// A stage of one stream. take() gets one token's text (valid UTF-8), or a further part of the whole
// text behind a step that joins tokens; it appends what it lets through to `next`.
class DecodeStage {
 public:
  explicit DecodeStage(DecodeStage* next) : next_(next) {}
  virtual ~DecodeStage() = default;
  virtual void take(std::string_view text) = 0;
  virtual void finish() {}

 protected:
  void pass(std::string_view text) { next_->take(text); }

 private:
  DecodeStage* next_;
};

// One step of a decoder: const and thread-safe; makes the stage of a stream.
class DecodeStep {
 public:
  virtual ~DecodeStep() = default;
  virtual std::unique_ptr<DecodeStage> make_stage(DecodeStage* next) const = 0;
  // The token's text in mid-stream, for Tokenizer::token_bytes. Default: unchanged.
  virtual std::string mid_text(std::string token) const { return token; }
};

// Byte-level: tokens in the alphabet are bytes, others stand for themselves.
std::unique_ptr<DecodeStep> make_byte_level_decoder();
// <0xXX> tokens are bytes. A run of them that is not valid UTF-8 becomes U+FFFD, one a byte, as
// Hugging Face has it; so a run waits until it ends.
std::unique_ptr<DecodeStep> make_byte_fallback_decoder();
// needle: not empty.
std::unique_ptr<DecodeStep> make_replace_decoder(std::string needle, std::string replacement);
// Up to `left` and `right` times `character` at the ends: of every token, or of the whole text.
std::unique_ptr<DecodeStep> make_strip_decoder(std::string character, size_t left, size_t right,
                                               bool whole_text);
// `replacement` becomes a space; in the first token it vanishes, where the encoder put it there.
std::unique_ptr<DecodeStep> make_metaspace_decoder(std::string replacement, bool strips_first);
// What Hugging Face does without a decoder: spaces between the tokens.
std::unique_ptr<DecodeStep> make_space_joiner();

}  // namespace minisgl
