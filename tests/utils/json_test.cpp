#include "utils/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "utils/files.h"

namespace minisgl {
namespace {

using testing::HasSubstr;

std::string message_of(const std::string& text, ErrorKind expected_kind) {
  try {
    parse_json(text, "request body", expected_kind);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), expected_kind);
    return error.what();
  }
  ADD_FAILURE() << "no error for " << text.substr(0, 40);
  return {};
}

TEST(ParseJson, KeepsTheOrderOfKeys) {
  EXPECT_EQ(parse_json(R"({"b": 1, "a": [true, null]})", "x").dump(), R"({"b":1,"a":[true,null]})");
}

TEST(ParseJson, NamesTheSourceOfWhatIsNotJson) {
  for (const char* text : {"", "{", R"({"a" 1})", "[1,]", "nul", "\"\xff\"", "1 2"}) {
    EXPECT_THAT(message_of(text, ErrorKind::kInvalidArgument),
                HasSubstr("request body: not valid JSON"))
        << text;
  }
}

TEST(ParseJson, RefusesNestingThatCouldExhaustTheStack) {
  EXPECT_THAT(message_of(std::string(1000000, '['), ErrorKind::kBadFile),
              HasSubstr("nested deeper than 128 levels at byte 128"));
  const std::string deep = std::string(128, '[') + std::string(128, ']');
  EXPECT_EQ(parse_json(deep, "x").size(), 1u);
}

TEST(ParseJson, DoesNotCountBracketsInsideStrings) {
  const std::string text = "\"" + std::string(1000, '[') + "\\\"" + std::string(1000, '{') + "\"";
  EXPECT_EQ(parse_json(text, "x").get<std::string>().size(), 2001u);
}

TEST(ReadJsonFile, NamesTheFile) {
  const std::string path = testing::TempDir() + "/json_test.json";
  write_file(path, R"({"a": 1)");
  try {
    read_json_file(path);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadFile);
    EXPECT_THAT(error.what(), HasSubstr(path));
  }
  write_file(path, R"({"a": 1})");
  EXPECT_EQ(read_json_file(path)["a"], 1);
}

}  // namespace
}  // namespace minisgl
