#include "tokenizer/utf8.h"

#include <gtest/gtest.h>

namespace minisgl {
namespace {

struct Utf8Case {
  const char* name;
  std::string bytes;
  std::string text;
};

class Utf8 : public ::testing::TestWithParam<Utf8Case> {};

TEST_P(Utf8, InvalidPartsBecomeReplacementCharacters) {
  EXPECT_EQ(to_valid_utf8(GetParam().bytes), GetParam().text);
  EXPECT_EQ(is_valid_utf8(GetParam().bytes), GetParam().bytes == GetParam().text);
}

TEST_P(Utf8, BytewiseAssemblyGivesTheSame) {
  Utf8Assembler assembler;
  std::string out;
  for (const char byte : GetParam().bytes) {
    assembler.push(std::string(1, byte), out);
    EXPECT_TRUE(is_valid_utf8(out));
  }
  assembler.finish(out);
  EXPECT_EQ(out, GetParam().text);
}

#define R "\xEF\xBF\xBD"
INSTANTIATE_TEST_SUITE_P(Cases, Utf8,
                         ::testing::ValuesIn(std::vector<Utf8Case>{
                             {"Ascii", "abc", "abc"},
                             {"Characters", "é你😀", "é你😀"},
                             {"LoneContinuation", "a\x80z", "a" R "z"},
                             {"CutOff", "a\xE4\xBD", "a" R},
                             {"CutOffThenText", "\xF0\x9F\x98z", R "z"},
                             {"Overlong", "\xC0\xAF", R R},
                             {"OverlongThree", "\xE0\x80\xAF", R R R},
                             {"Surrogate", "\xED\xA0\x80", R R R},
                             {"TooHigh", "\xF4\x90\x80\x80", R R R R},
                             {"NeverALead", "\xFF\xFE", R R},
                             {"Unicode3_9", "a\xF1\x80\x80\xE1\x80\xC2z", "a" R R R "z"},
                         }),
                         [](const auto& info) { return std::string(info.param.name); });
#undef R

TEST(Utf8Text, ReadsAndWritesEveryCharacter) {
  for (char32_t c = 0; c <= 0x10FFFF; c += c < 0x3000 ? 1 : 97) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string text;
    append_utf8(text, c);
    size_t pos = 0, begin = 9;
    EXPECT_EQ(next_code_point(text, pos), c);
    EXPECT_EQ(pos, text.size());
    EXPECT_EQ(last_code_point(text, begin), c);
    EXPECT_EQ(begin, 0u);
    EXPECT_EQ(utf8_length(text[0]), text.size());
  }
}

}  // namespace
}  // namespace minisgl
