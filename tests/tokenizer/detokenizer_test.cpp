#include "tokenizer/detokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "goldens.h"
#include "tokenizer/utf8.h"
#include "utils/error.h"

namespace minisgl {
namespace {

std::unique_ptr<Tokenizer> load(const std::string& name) {
  return load_tokenizer(testing::test_data_dir() + "/tokenizer/" + name + ".json");
}

// What a stream of these ids sends, piece by piece, the rest last.
std::vector<std::string> pieces(const Tokenizer& tokenizer, const std::vector<int32_t>& ids,
                                DetokenizerOptions options) {
  Detokenizer detokenizer(tokenizer, std::move(options));
  std::vector<std::string> sent;
  for (const int32_t id : ids) {
    if (std::string piece = detokenizer.push(id); !piece.empty()) sent.push_back(piece);
    if (detokenizer.stopped()) break;
  }
  if (std::string piece = detokenizer.finish(); !piece.empty()) sent.push_back(piece);
  return sent;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& part : parts) all += part;
  return all;
}

TEST(Detokenizer, SendsNothingOfAStopStringThatSpansTokens) {
  const auto tokenizer = load("byte_level");
  const auto ids = tokenizer->encode("ABCDEFGHIJKLM", {.add_special = false});
  ASSERT_GT(ids.size(), 8u);
  for (const std::string& piece : pieces(*tokenizer, ids, {.stop = {"DEFGHIJ"}})) {
    EXPECT_EQ(piece.find_first_of("DEFGHIJ"), std::string::npos) << piece;
  }
  EXPECT_EQ(joined(pieces(*tokenizer, ids, {.stop = {"DEFGHIJ"}})), "ABC");
}

TEST(Detokenizer, ReleasesHeldBackTextWhenItCannotBecomeAStopString) {
  const auto tokenizer = load("byte_level");
  const auto ids = tokenizer->encode("ABCDEFGHIXYZ", {.add_special = false});
  EXPECT_EQ(joined(pieces(*tokenizer, ids, {.stop = {"DEFGHIJ"}})), "ABCDEFGHIXYZ");
}

TEST(Detokenizer, FlushesHeldBackTextAtTheEnd) {
  const auto tokenizer = load("byte_level");
  const auto ids = tokenizer->encode("ABCDEFGH", {.add_special = false});
  const auto sent = pieces(*tokenizer, ids, {.stop = {"DEFGHIJ"}});
  EXPECT_EQ(joined(sent), "ABCDEFGH");
  EXPECT_EQ(sent.back(), "DEFGH");
}

TEST(Detokenizer, CanKeepTheStopStringInTheText) {
  const auto tokenizer = load("byte_level");
  const auto ids = tokenizer->encode("one two three", {.add_special = false});
  EXPECT_EQ(joined(pieces(*tokenizer, ids, {.stop = {"two"}, .include_stop = true})), "one two");
}

TEST(Detokenizer, SaysWhichStopStringItWas) {
  const auto tokenizer = load("byte_level");
  Detokenizer detokenizer(*tokenizer, {.stop = {"zzz", "two"}});
  for (const int32_t id : tokenizer->encode("one two three", {.add_special = false})) {
    detokenizer.push(id);
  }
  ASSERT_TRUE(detokenizer.stopped());
  EXPECT_EQ(detokenizer.stop_string(), "two");
  EXPECT_EQ(detokenizer.finish(), "");
}

TEST(Detokenizer, NeverSendsHalfACharacter) {
  for (const char* name : {"byte_level", "llama_like", "gemma_like", "unigram_bytes"}) {
    const auto tokenizer = load(name);
    const std::string text = "Привет 👩‍👩‍👧 你好吗 𝔘𝔫𝔦 ß";
    const auto ids = tokenizer->encode(text, {.add_special = false});
    const auto sent = pieces(*tokenizer, ids, {.stop = {"never"}});
    EXPECT_EQ(joined(sent), tokenizer->decode(ids)) << name;
    for (const std::string& piece : sent) {
      EXPECT_TRUE(is_valid_utf8(piece)) << name;
      if (std::string(name) != "unigram_bytes") {
        EXPECT_EQ(piece.find("\xEF\xBF\xBD"), std::string::npos) << name << ": " << piece;
      }
    }
  }
}

TEST(Detokenizer, TellsAnUnfinishedCharacterAtTheEnd) {
  const auto tokenizer = load("byte_level");
  auto ids = tokenizer->encode("é", {.add_special = false, .parse_special = false});
  const std::string bytes = tokenizer->token_bytes(ids.back());
  if (ids.size() == 1) GTEST_SKIP() << "é is one token here";
  ids.pop_back();
  Detokenizer detokenizer(*tokenizer);
  EXPECT_EQ(detokenizer.push(ids[0]), "");
  EXPECT_EQ(detokenizer.finish(), "\xEF\xBF\xBD");
}

TEST(Detokenizer, HidesSpecialTokensUnlessAsked) {
  const auto tokenizer = load("byte_level");
  const auto ids = tokenizer->encode("<s>hi</s>", {.add_special = false});
  EXPECT_EQ(joined(pieces(*tokenizer, ids, {})), "hi");
  EXPECT_EQ(joined(pieces(*tokenizer, ids, {.skip_special = false})), "<s>hi</s>");
}

TEST(Detokenizer, IgnoresIdsWithoutAToken) {
  const auto tokenizer = load("byte_level");
  EXPECT_EQ(joined(pieces(*tokenizer, {-1, tokenizer->vocab_size(), 1 << 30}, {})), "");
}

struct StopCase {
  const char* name;
  std::vector<std::string> stops;
  std::string text;
  std::string out;
  std::string match;  // empty: none
};

class StopStringsCase : public ::testing::TestWithParam<StopCase> {};

// The outcome may not depend on how the text is cut.
TEST_P(StopStringsCase, GivesTheSameHoweverTheTextIsCut) {
  const StopCase& c = GetParam();
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    StopStrings stops(c.stops);
    std::string out;
    for (size_t pos = 0; pos < c.text.size();) {
      const size_t size = round == 0 ? c.text.size() : 1 + random() % 4;
      stops.push(std::string_view(c.text).substr(pos, size), out);
      pos += size;
    }
    stops.finish(out);
    EXPECT_EQ(out, c.out);
    EXPECT_EQ(stops.matched() ? stops.match() : "", c.match);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, StopStringsCase,
                         ::testing::ValuesIn(std::vector<StopCase>{
                             {"None", {}, "abc", "abc", ""},
                             {"NotThere", {"xyz"}, "abcxy", "abcxy", ""},
                             {"AtTheStart", {"ab"}, "abc", "", "ab"},
                             {"AfterAFalseStart", {"aab"}, "aaab", "a", "aab"},
                             {"SelfOverlapping", {"abab"}, "xababab", "x", "abab"},
                             {"FirstToEndWins", {"DEFGHIJ", "FG"}, "ABCDEFGHIJ", "ABCDE", "FG"},
                             {"LongestOfThoseThatEndTogether", {"b", "ab"}, "xabc", "x", "ab"},
                             {"Newlines", {"\n\n"}, "a\nb\n\nc", "a\nb", "\n\n"},
                             {"Characters", {"好"}, "你好", "你", "好"},
                             {"SameLeadByte", {"佡"}, "你好", "你好", ""},
                         }),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(StopStrings, RefusesAnEmptyOrBrokenString) {
  EXPECT_THROW(StopStrings({""}), Error);
  EXPECT_THROW(StopStrings({"ok", "\xE4\xBD"}), Error);
}

TEST(StopStrings, StaysLinearInALongRepetitiveStop) {
  StopStrings stops({std::string(50'000, 'a') + "b"});
  std::string out;
  const std::string text(1'000'000, 'a');
  stops.push(text, out);
  EXPECT_EQ(out.size(), text.size() - 50'000);
  stops.finish(out);
  EXPECT_EQ(out, text);
}

}  // namespace
}  // namespace minisgl
