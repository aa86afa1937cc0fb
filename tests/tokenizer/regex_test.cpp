#include "tokenizer/regex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "utils/error.h"

namespace minisgl {
namespace {

std::vector<std::string> matches(std::string_view pattern, std::string_view text) {
  const Regex regex(pattern, "test");
  RegexScratch scratch;
  RegexScanner scanner(regex, text, scratch);
  std::vector<std::string> found;
  for (RegexMatch m = scanner.next(); m.found; m = scanner.next()) {
    found.emplace_back(text.substr(m.begin, m.end - m.begin));
  }
  return found;
}

using ::testing::ElementsAre;

TEST(Regex, FollowsOnigurumaWhereItDiffersFromPcre) {
  EXPECT_THAT(matches(R"(\h+)", "xfaz 0G"), ElementsAre("fa", "0"));
  EXPECT_THAT(matches(R"(\d{1,2}+)", "12345"), ElementsAre("12345"));
  EXPECT_THAT(matches(R"(\d{,2}x)", "123x"), ElementsAre("23x"));
  EXPECT_THAT(matches(R"(\u4e2d)", "中"), ElementsAre("中"));
  EXPECT_THAT(matches(R"(a(?m:.)b)", "a\nb"), ElementsAre("a\nb"));
  EXPECT_THAT(matches(R"(\s)", "\u180e\u0085"), ElementsAre("\u0085"));
  EXPECT_THAT(matches(R"({x})", "{x}"), ElementsAre("{x}"));
}

TEST(Regex, FindsEmptyMatchesAsOnigurumaDoes) {
  EXPECT_THAT(matches("x*", "xxa"), ElementsAre("xx", ""));
  EXPECT_THAT(matches("", "é"), ElementsAre("", ""));
}

TEST(Regex, RefusesWhatItWouldReadDifferently) {
  for (const char* pattern : {"[a&&b]", "[a[b]]", R"([\W])", R"(\u12)", "(", "[a", "a{2", "\\",
                              R"(\p{NoSuchProperty})", R"((a)\1)", R"(\C)", "*", "[[:alpha:"}) {
    if (std::string_view(pattern) == "a{2") {
      EXPECT_THAT(matches(pattern, "a{2"), ElementsAre("a{2"));
      continue;
    }
    try {
      Regex regex(pattern, "tokenizer.json: pre_tokenizer");
      ADD_FAILURE() << pattern << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kBadFile);
      EXPECT_THAT(error.what(), ::testing::HasSubstr("tokenizer.json: pre_tokenizer"));
    }
  }
}

TEST(Regex, GivesUpOnEndlessBacktracking) {
  const Regex regex("(a|aa|aaa)*[0-9]", "test");
  RegexScratch scratch;
  const std::string text(200, 'a');
  try {
    regex.find(text, 0, scratch);
    FAIL() << "it should have given up";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  }
}

TEST(Regex, RefusesDeepNesting) {
  EXPECT_THROW(Regex(std::string(1000, '(') + std::string(1000, ')'), "test"), Error);
}

}  // namespace
}  // namespace minisgl
