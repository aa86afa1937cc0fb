// tokenizer.model: a SentencePiece model, written as a protocol buffer.
//
//   ModelProto       1 pieces (repeated), 2 trainer_spec, 3 normalizer_spec
//   SentencePiece    1 piece, 2 score (float), 3 type
//   TrainerSpec      3 model_type (1 unigram, 2 BPE), 35 byte_fallback, 40-43 unk, bos, eos, pad id
//   NormalizerSpec   2 precompiled_charsmap, 3 add_dummy_prefix, 4 remove_extra_whitespaces,
//                    5 escape_whitespaces
#include <cstring>

#include "tokenizer/load_json.h"
#include "tokenizer/sentencepiece.h"
#include "tokenizer/utf8.h"
#include "utils/error.h"

namespace minisgl {
namespace {

// Reads the fields of one message, one after another.
class ProtoReader {
 public:
  ProtoReader(std::string_view bytes, std::string_view name) : bytes_(bytes), name_(name) {}

  // Moves to the next field; false at the end. Its value is in number() or bytes().
  bool next() {
    if (bytes_.empty()) return false;
    const uint64_t tag = varint();
    field_ = tag >> 3;
    switch (tag & 7) {
      case 0:
        number_ = varint();
        break;
      case 1:
        value_ = take(8);
        break;
      case 2:
        value_ = take(varint());
        break;
      case 5:
        value_ = take(4);
        break;
      default:
        fail();
    }
    wire_type_ = static_cast<int>(tag & 7);
    return true;
  }

  uint64_t field() const { return field_; }
  uint64_t number() const {
    if (wire_type_ != 0) fail();
    return number_;
  }
  // Ids are int32, negative ones written as 64 bits.
  int32_t integer() const { return static_cast<int32_t>(number()); }
  std::string_view bytes() const {
    if (wire_type_ != 2) fail();
    return value_;
  }
  float real() const {
    if (wire_type_ != 5) fail();
    float value = 0;
    std::memcpy(&value, value_.data(), 4);
    return value;
  }

 private:
  [[noreturn]] void fail() const {
    throw_error(ErrorKind::kBadFile, "{}: not a SentencePiece model, or damaged ({} bytes left)",
                name_, bytes_.size());
  }
  std::string_view take(uint64_t count) {
    if (count > bytes_.size()) fail();
    const std::string_view taken = bytes_.substr(0, static_cast<size_t>(count));
    bytes_.remove_prefix(static_cast<size_t>(count));
    return taken;
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(take(1)[0]);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    fail();
  }

  std::string_view bytes_, name_;
  uint64_t field_ = 0, number_ = 0;
  std::string_view value_;
  int wire_type_ = 0;
};

SentencePiece read_piece(std::string_view bytes, std::string_view name) {
  SentencePiece piece;
  ProtoReader reader(bytes, name);
  while (reader.next()) {
    if (reader.field() == 1) piece.text = to_valid_utf8(reader.bytes());
    if (reader.field() == 2) piece.score = reader.real();
    if (reader.field() == 3) {
      if (reader.number() > 6) {
        throw_error(ErrorKind::kBadFile, "{}: a piece has type {}; expected 1 to 6", name,
                    reader.number());
      }
      piece.type = static_cast<PieceType>(reader.number());
    }
  }
  return piece;
}

struct Spec {
  SentencePieceSpec pieces;
  int32_t unk_id = 0, bos_id = 1, eos_id = 2, pad_id = -1;  // SentencePiece's defaults
};

void read_trainer_spec(std::string_view bytes, std::string_view name, Spec& spec) {
  ProtoReader reader(bytes, name);
  while (reader.next()) {
    switch (reader.field()) {
      case 3:
        if (reader.number() != 1 && reader.number() != 2) {
          throw_error(ErrorKind::kUnsupported,
                      "{}: model type {}; known are 1 (unigram) and 2 (BPE)", name,
                      reader.number());
        }
        spec.pieces.unigram = reader.number() == 1;
        break;
      case 24:
        if (reader.number() != 0) {
          throw_error(ErrorKind::kUnsupported, "{}: treat_whitespace_as_suffix is not known", name);
        }
        break;
      case 35:
        spec.pieces.byte_fallback = reader.number() != 0;
        break;
      case 40:
        spec.unk_id = reader.integer();
        break;
      case 41:
        spec.bos_id = reader.integer();
        break;
      case 42:
        spec.eos_id = reader.integer();
        break;
      case 43:
        spec.pad_id = reader.integer();
        break;
      default:
        break;  // how it was trained
    }
  }
}

void read_normalizer_spec(std::string_view bytes, std::string_view name, SentencePieceSpec& spec) {
  ProtoReader reader(bytes, name);
  while (reader.next()) {
    switch (reader.field()) {
      case 2:
        spec.charsmap = reader.bytes();
        break;
      case 3:
        spec.add_dummy_prefix = reader.number() != 0;
        break;
      case 4:
        spec.remove_extra_whitespaces = reader.number() != 0;
        break;
      case 5:
        if (reader.number() == 0) {
          throw_error(ErrorKind::kUnsupported, "{}: escape_whitespaces false is not known", name);
        }
        break;
      default:
        break;
    }
  }
}

int32_t existing(int32_t id, const SentencePieceSpec& spec) {
  return id >= 0 && static_cast<size_t>(id) < spec.pieces.size() ? id : -1;
}

}  // namespace

std::unique_ptr<Tokenizer> build_sentencepiece_tokenizer(std::string_view model,
                                                         const TokenizerConfig& config,
                                                         std::string_view name) {
  Spec spec;
  SentencePieceSpec& pieces = spec.pieces;
  pieces.unigram = true;  // SentencePiece's defaults
  pieces.byte_fallback = false;
  pieces.remove_extra_whitespaces = true;
  ProtoReader reader(model, name);
  while (reader.next()) {
    if (reader.field() == 1) pieces.pieces.push_back(read_piece(reader.bytes(), name));
    if (reader.field() == 2) read_trainer_spec(reader.bytes(), name, spec);
    if (reader.field() == 3) read_normalizer_spec(reader.bytes(), name, pieces);
  }
  if (pieces.pieces.empty() || pieces.pieces.size() > static_cast<size_t>(kMaxTokenId)) {
    throw_error(ErrorKind::kBadFile, "{}: {} pieces; expected 1 to {}", name, pieces.pieces.size(),
                kMaxTokenId);
  }
  pieces.info.unk_id = existing(spec.unk_id, pieces);
  pieces.info.bos_id = existing(spec.bos_id, pieces);
  pieces.info.eos_id = existing(spec.eos_id, pieces);
  pieces.info.pad_id = existing(spec.pad_id, pieces);
  TokenizerParts parts = make_sentencepiece_parts(std::move(pieces), name);
  apply_config(config, parts);
  parts.info.adds_bos = config.add_bos_token.value_or(true) && parts.info.bos_id >= 0;
  parts.info.adds_eos = config.add_eos_token.value_or(false) && parts.info.eos_id >= 0;
  put_bos_and_eos_around(parts);
  return make_pipeline_tokenizer(std::move(parts), name);
}

std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(std::string_view model,
                                                        std::string_view config_json,
                                                        std::string_view name) {
  return build_sentencepiece_tokenizer(
      model, parse_tokenizer_config(config_json, std::string(name) + ": tokenizer_config.json"),
      name);
}

}  // namespace minisgl
