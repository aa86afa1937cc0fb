// The promise of this room: text to token ids and back, exactly as the model was trained with.
//
// load_tokenizer() and make_gguf_tokenizer() make one from a model's files; detokenizer.h turns a
// stream of ids into text with stop strings; chat_template/ writes a conversation as a prompt.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace minisgl {

class GgufFile;
class Logger;

struct EncodeOptions {
  bool add_special = true;    // put what the model expects around a text (BOS, sometimes EOS)
  bool parse_special = true;  // "<|im_end|>" in the text is that token, not ten characters
};

struct DecodeOptions {
  bool skip_special = true;  // leave special tokens out of the text
};

// Turns ids into text as they come. What is appended is always whole UTF-8 characters and is never
// taken back; the concatenation equals Tokenizer::decode of all ids. One thread at a time; must not
// outlive its tokenizer.
class DecodeStream {
 public:
  virtual ~DecodeStream() = default;
  // Appends what is now certain. An unfinished character waits for its other bytes.
  virtual void push(int32_t id, std::string& text) = 0;
  // Appends the rest; bytes that never became a character are U+FFFD.
  virtual void finish(std::string& text) = 0;
};

// What a model's files say around the vocabulary.
struct TokenizerInfo {
  int32_t bos_id = -1;  // -1: the model has none
  int32_t eos_id = -1;
  int32_t pad_id = -1;
  int32_t unk_id = -1;
  // Ids that end a turn, eos_id among them: <|im_end|>, <|eot_id|>, <end_of_turn> and the like
  // where a GGUF names them.
  std::vector<int32_t> end_ids;
  bool adds_bos = false;  // encode() with add_special begins with bos_id
  bool adds_eos = false;
  std::optional<std::string> chat_template;  // Jinja
  // Further templates that a file names, e.g. "tool_use".
  std::vector<std::pair<std::string, std::string>> named_templates;
};

// Const and thread-safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // text: any bytes; what is not UTF-8 is read as U+FFFD. At most 1 GiB.
  // Errors: kInvalidArgument (too long; a regular expression that gives up on it).
  virtual std::vector<int32_t> encode(std::string_view text, EncodeOptions options = {}) const = 0;
  // A prompt as a server takes it: special tokens are parsed and added, and a text that already
  // begins with the BOS token gets no second one. For a prompt from a chat template, which writes
  // its own special tokens, call encode(text, {.add_special = false}).
  std::vector<int32_t> encode_prompt(std::string_view text) const;

  virtual std::unique_ptr<DecodeStream> new_stream(DecodeOptions options = {}) const = 0;
  // Valid UTF-8. Ids that no token has decode to nothing: models have more rows than tokens.
  std::string decode(std::span<const int32_t> ids, DecodeOptions options = {}) const;
  // The bytes that a token adds in mid-text: perhaps part of a character. Empty where no such id.
  virtual std::string token_bytes(int32_t id) const = 0;
  // As written in the vocabulary ("Ġthe", "▁the", "<0x0A>").
  virtual std::string_view token_text(int32_t id) const = 0;
  // -1 where no token is written like that.
  virtual int32_t token_to_id(std::string_view token) const = 0;
  // Highest id + 1, added tokens included.
  virtual int32_t vocab_size() const = 0;
  virtual bool is_special(int32_t id) const = 0;

  const TokenizerInfo& info() const { return info_; }
  // What a chat template gets; empty where the model has none.
  std::string_view bos_token() const { return token_text(info_.bos_id); }
  std::string_view eos_token() const { return token_text(info_.eos_id); }

 protected:
  TokenizerInfo info_;
};

// path: a folder with tokenizer.json (preferred) or tokenizer.model, tokenizer_config.json and
// chat_template.jinja; or one of the first two files; or a GGUF file.
// log: told where the files contradict each other.
// Errors: kNotFound, kBadFile, kUnsupported (names the part of the file that is not known).
std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path, const Logger& log);
std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path);

// The content of a tokenizer.json and, where not empty, of a tokenizer_config.json.
// name: for errors.
std::unique_ptr<Tokenizer> make_json_tokenizer(std::string_view json, std::string_view config_json,
                                               std::string_view name);
// The content of a SentencePiece model (tokenizer.model).
std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(std::string_view model,
                                                        std::string_view config_json,
                                                        std::string_view name);
// The tokenizer inside a GGUF file. Nothing of `file` is kept.
std::unique_ptr<Tokenizer> make_gguf_tokenizer(const GgufFile& file);

}  // namespace minisgl
