// tokenizer.model files and GGUF's kind "llama".
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <map>

#include "goldens.h"
#include "tokenizer/golden_cases.h"
#include "tokenizer/tokenizer.h"
#include "utils/error.h"
#include "utils/files.h"
#include "utils/gguf.h"
#include "utils/gguf_builder.h"

namespace minisgl {
namespace {

using testing::GgufBuilder;
using testing::ids_of;
using testing::read_jsonl;

// The pieces of Llama 2's vocabulary that the cases need, at their ids; the rest is filler.
std::string llama2_gguf() {
  std::vector<std::string> tokens(32000);
  std::vector<float> scores(32000, -1e6f);
  std::vector<int32_t> types(32000, 1);
  for (int i = 0; i < 32000; ++i) tokens[i] = "filler " + std::to_string(i);
  for (int byte = 0; byte < 256; ++byte) {
    tokens[3 + byte] = fmt::format("<0x{:02X}>", byte);
    types[3 + byte] = 6;
  }
  const std::map<int, std::pair<std::string, int>> special = {
      {0, {"<unk>", 2}}, {1, {"<s>", 3}}, {2, {"</s>", 3}}};
  for (const auto& [id, token] : special) {
    tokens[id] = token.first;
    types[id] = token.second;
    scores[id] = 0;
  }
  // id, text, score: merges further up in a real file have the higher scores.
  const std::vector<std::tuple<int, std::string, float>> pieces = {
      {29871, "▁", -29612},  {15043, "▁Hello", -14784}, {3186, "▁world", -2927},
      {910, "▁This", -651},  {338, "▁is", -79},         {29889, ".", -29630},
      {8223, "cpp", -7964},  {10994, "Hello", -10735},  {1526, "He", -100},
      {645, "ll", -386},     {29877, "o", -29618},      {29882, "h", -29623},
      {29950, "H", -29691},  {29872, "e", -29613},      {29880, "l", -29621},
      {281, "▁w", -22},      {272, "or", -13},          {430, "ld", -171},
      {13762, "world", -3},  {29893, "w", -29634},      {29878, "r", -29619},
      {29881, "d", -29622},  {323, "▁T", -64},          {29911, "T", -29652},
      {4013, "This", -3754}, {275, "is", -16},          {29875, "i", -29616},
      {29879, "s", -29620},  {29883, "c", -29624},      {29886, "p", -29627},
      {407, "pp", -148},     {379, "▁H", -120},         {6826, "hello", -9000},
      {354, "▁He", -121},    {6090, "llo", -150},       {500, "▁Th", -65},
      {28399, "▁wor", -23},  {360, "▁i", -80}};
  for (const auto& [id, text, score] : pieces) {
    tokens[id] = text;
    scores[id] = score;
  }
  std::string token_bytes, score_bytes, type_bytes;
  for (int i = 0; i < 32000; ++i) {
    token_bytes += GgufBuilder::text(tokens[i]);
    score_bytes += GgufBuilder::raw(scores[i]);
    type_bytes += GgufBuilder::raw(types[i]);
  }
  return GgufBuilder()
      .string("tokenizer.ggml.model", "llama")
      .array("tokenizer.ggml.tokens", GgufType::kString, 32000, token_bytes)
      .array("tokenizer.ggml.scores", GgufType::kFloat32, 32000, score_bytes)
      .array("tokenizer.ggml.token_type", GgufType::kInt32, 32000, type_bytes)
      .u32("tokenizer.ggml.bos_token_id", 1)
      .u32("tokenizer.ggml.eos_token_id", 2)
      .build();
}

std::unique_ptr<Tokenizer> gguf_tokenizer(const std::string& bytes) {
  return make_gguf_tokenizer(
      GgufFile::parse(std::as_bytes(std::span(bytes.data(), bytes.size())), "test.gguf"));
}

TEST(LlamaKind, PutsTheSpacePrefixAndFallsBackToBytes) {
  const auto tokenizer = gguf_tokenizer(llama2_gguf());
  const auto plain = [&](const char* text) {
    return tokenizer->encode(text, {.add_special = false});
  };
  EXPECT_EQ(plain("Hello world"), (std::vector<int32_t>{15043, 3186}));
  EXPECT_EQ(plain(" Hello world"), (std::vector<int32_t>{29871, 15043, 3186}));
  const std::vector<int32_t> llama = {1, 910, 338, 29871, 243, 162, 169, 156, 29889, 8223};
  EXPECT_EQ(tokenizer->encode("This is 🦙.cpp"), llama);
  EXPECT_EQ(tokenizer->decode(llama), "This is 🦙.cpp");
}

TEST(LlamaKind, AddsBosOnceToAPromptThatHasIt) {
  const auto tokenizer = gguf_tokenizer(llama2_gguf());
  EXPECT_TRUE(tokenizer->info().adds_bos);
  const std::vector<int32_t> once = {1, 15043, 3186};
  EXPECT_EQ(tokenizer->encode_prompt("Hello world"), once);
  EXPECT_EQ(tokenizer->encode_prompt("<s>Hello world"), once);
  // What a chat template wrote is encoded as it is.
  EXPECT_EQ(tokenizer->encode("<s>Hello world", {.add_special = false}), once);
}

TEST(LlamaKind, DoesNotMergeTextIntoAControlToken) {
  const auto tokenizer = gguf_tokenizer(llama2_gguf());
  const auto ids = tokenizer->encode("<s>", {.add_special = false, .parse_special = false});
  EXPECT_THAT(ids, ::testing::Not(::testing::Contains(1)));
  EXPECT_EQ(tokenizer->decode(ids), "<s>");
}

class SentencePieceModel : public ::testing::TestWithParam<const char*> {};

TEST_P(SentencePieceModel, EncodesAsTheReference) {
  const std::string base = testing::test_data_dir() + "/tokenizer/" + GetParam();
  const auto tokenizer = load_tokenizer(base + ".model");
  for (const Json& line : read_jsonl(base + ".model.jsonl")) {
    const std::string text = line["text"];
    const auto ids = ids_of(line["ids"]);
    EXPECT_EQ(tokenizer->encode(text, {.add_special = false, .parse_special = false}), ids) << text;
    EXPECT_EQ(tokenizer->decode(ids), line["decoded"]) << text;
  }
  EXPECT_EQ(tokenizer->bos_token(), "<s>");
  EXPECT_EQ(tokenizer->eos_token(), "</s>");
}

INSTANTIATE_TEST_SUITE_P(Types, SentencePieceModel,
                         ::testing::Values("spm_bpe", "spm_unigram", "spm_nfkc"),
                         [](const auto& info) { return std::string(info.param); });

TEST(SentencePieceFile, EveryCutOffFileIsRefusedOrRead) {
  const std::string whole = read_file(testing::test_data_dir() + "/tokenizer/spm_bpe.model");
  int refused = 0;
  for (size_t size = 0; size < whole.size(); size += 7) {
    try {
      make_sentencepiece_tokenizer(whole.substr(0, size), "", "cut.model")->encode("some text");
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("cut.model"));
      ++refused;
    }
  }
  EXPECT_GT(refused, 100);
}

TEST(SentencePieceFile, TextIsNotAModel) {
  EXPECT_THROW(make_sentencepiece_tokenizer("not a model at all", "", "x.model"), Error);
  EXPECT_THROW(make_sentencepiece_tokenizer("", "", "x.model"), Error);
}

}  // namespace
}  // namespace minisgl
