// Small tokenizer.json files and single parts against what Hugging Face tokenizers makes of the
// same texts (tests/data/tokenizer/make_cases.py).
#include <gtest/gtest.h>

#include "goldens.h"
#include "tokenizer/detokenizer.h"
#include "tokenizer/golden_cases.h"
#include "tokenizer/json_parts.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"

namespace minisgl {
namespace {

using testing::ids_of;
using testing::read_jsonl;

std::string data_path(const std::string& name) {
  return testing::test_data_dir() + "/tokenizer/" + name;
}

class SmallTokenizer : public ::testing::TestWithParam<const char*> {
 protected:
  const std::string name_ = GetParam();
  std::unique_ptr<Tokenizer> tokenizer_ = load_tokenizer(data_path(name_ + ".json"));
  std::vector<Json> cases_ = read_jsonl(data_path(name_ + ".jsonl"));
};

TEST_P(SmallTokenizer, EncodesAsTheReference) {
  for (const Json& line : cases_) {
    if (line.contains("ids_only")) continue;
    const std::string text = line["text"];
    EXPECT_EQ(tokenizer_->encode(text, {.add_special = false}), ids_of(line["ids"])) << text;
    EXPECT_EQ(tokenizer_->encode(text), ids_of(line["ids_special"])) << text;
    EXPECT_EQ(tokenizer_->encode(text, {.add_special = false, .parse_special = false}),
              ids_of(line["ids_plain"]))
        << text;
  }
}

TEST_P(SmallTokenizer, DecodesAsTheReference) {
  for (const Json& line : cases_) {
    const auto ids = ids_of(line.contains("ids_only") ? line["ids_only"] : line["ids"]);
    EXPECT_EQ(tokenizer_->decode(ids, {.skip_special = false}), line["decoded"]) << line;
    EXPECT_EQ(tokenizer_->decode(ids), line["decoded_skip"]) << line;
  }
}

TEST_P(SmallTokenizer, StreamsWholeCharactersThatAddUpToTheDecode) {
  for (const Json& line : cases_) {
    Detokenizer detokenizer(*tokenizer_, {.skip_special = false});
    std::string text;
    for (const int32_t id : ids_of(line.contains("ids_only") ? line["ids_only"] : line["ids"])) {
      const std::string piece = detokenizer.push(id);
      EXPECT_TRUE(is_valid_utf8(piece)) << line;
      text += piece;
    }
    text += detokenizer.finish();
    EXPECT_EQ(text, line["decoded"]) << line;
  }
}

INSTANTIATE_TEST_SUITE_P(All, SmallTokenizer,
                         ::testing::Values("byte_level", "mapped_bytes", "llama_like", "gemma_like",
                                           "unk", "unigram", "unigram_bytes", "no_decoder"),
                         [](const auto& info) { return std::string(info.param); });

// Collects what comes out of a chain.
struct Collector : PieceSink, DecodeStage {
  Collector() : DecodeStage(nullptr) {}
  void take(Piece piece) override { pieces.emplace_back(piece.text); }
  void take(std::string_view text) override { joined += text; }
  std::vector<std::string> pieces;
  std::string joined;
};

void check_normalizer(const JsonNode& config, const Json& cases) {
  const auto normalizer = read_normalizer(config);
  RegexScratch scratch;
  for (const Json& one : cases) {
    std::string text = one[0];
    normalizer->apply(text, scratch);
    EXPECT_EQ(text, one[1]) << simdjson::minify(config.element()) << " " << one[0];
  }
}

void check_pre_tokenizer(const JsonNode& config, const Json& cases) {
  const auto pre_tokenizer = read_pre_tokenizer(config, /*raw_bytes=*/false);
  RegexScratch scratch;
  for (const Json& one : cases) {
    const std::string text = one[0];
    Collector collector;
    pre_tokenizer->split({text, true}, collector, scratch);
    EXPECT_EQ(collector.pieces, one[1].get<std::vector<std::string>>())
        << simdjson::minify(config.element()) << " " << one[0];
  }
}

void check_decoder(const JsonNode& config, const Json& cases) {
  const auto steps = read_decoder(config);
  for (const Json& one : cases) {
    Collector end;
    std::vector<std::unique_ptr<DecodeStage>> stages;
    DecodeStage* first = &end;
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
      stages.push_back((*step)->make_stage(first));
      first = stages.back().get();
    }
    for (const Json& token : one[0]) first->take(std::string_view(token.get<std::string>()));
    for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) (*stage)->finish();
    EXPECT_EQ(end.joined, one[1]) << simdjson::minify(config.element()) << " " << one[0];
  }
}

TEST(JsonParts, EachDoesWhatTheReferenceDoes) {
  int parts = 0;
  for (const Json& line : read_jsonl(data_path("parts.jsonl"))) {
    simdjson::dom::parser parser;
    const std::string config = line["config"].dump();
    const JsonNode node(parser.parse(config), "parts.jsonl");
    if (line["kind"] == "normalizer") check_normalizer(node, line["cases"]);
    if (line["kind"] == "pre_tokenizer") check_pre_tokenizer(node, line["cases"]);
    if (line["kind"] == "decoder") check_decoder(node, line["cases"]);
    ++parts;
  }
  EXPECT_GE(parts, 90);
}

}  // namespace
}  // namespace minisgl
