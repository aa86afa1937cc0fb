// JSON lines in and out of a tokenizer, and prompts of chat requests.
#include "tokenizer/tokenize_jsonl.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>

#include "utils/error.h"
#include "utils/files.h"

namespace minisgl {
namespace {

// Characters a to h are tokens 3 to 10; "<s>" begins a text that asks for special tokens.
constexpr char kTokenizer[] = R"({
  "version": "1.0", "truncation": null, "padding": null,
  "added_tokens": [
    {"id": 0, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
    {"id": 1, "content": "</s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
  "normalizer": null, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false},
  "post_processor": {"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}}},
  "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
  "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
    "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
    "vocab": {"<s>": 0, "</s>": 1, "<": 2, "a": 3, "b": 4, "c": 5, "d": 6, "e": 7, "s": 8, ">": 9, "/": 10},
    "merges": []}})";
constexpr char kConfig[] =
    R"({"bos_token": "<s>", "eos_token": "</s>", "chat_template": "{{ bos_token }}{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}"})";

std::unique_ptr<Tokenizer> make_tokenizer() {
  return make_json_tokenizer(kTokenizer, kConfig, "test");
}

std::string encode(const std::string& lines) {
  std::istringstream in(lines);
  std::ostringstream out;
  encode_jsonl(*make_tokenizer(), in, out);
  return out.str();
}

std::string decode(const std::string& lines) {
  std::istringstream in(lines);
  std::ostringstream out;
  decode_jsonl(*make_tokenizer(), in, out);
  return out.str();
}

template <class Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.what();
  }
  return {};
}

TEST(TokenizeJsonlTest, EncodesALineALine) {
  EXPECT_EQ(encode("{\"text\": \"ab<s>\"}\n\n"
                   "{\"text\": \"ab\", \"add_special\": false}\r\n"
                   "{\"text\": \"<s>\", \"add_special\": false, \"parse_special\": false}"),
            "{\"ids\":[0,3,4,0]}\n{\"ids\":[3,4]}\n{\"ids\":[2,8,9]}\n");
  EXPECT_EQ(encode("{\"text\": \"\", \"add_special\": false}"), "{\"ids\":[]}\n");
  EXPECT_EQ(encode(""), "");
}

TEST(TokenizeJsonlTest, DecodesWithSpecialTokensWrittenOut) {
  EXPECT_EQ(decode("{\"ids\": [0, 3, 4, 1]}\n{\"ids\": []}\n"),
            "{\"text\":\"<s>ab</s>\"}\n{\"text\":\"\"}\n");
}

TEST(TokenizeJsonlTest, ErrorsNameTheLine) {
  EXPECT_EQ(message_of([] { encode("{\"text\": \"a\"}\n{\"txt\": \"a\"}"); }),
            "line 2: unknown key \"txt\"; known are: text, add_special, parse_special");
  EXPECT_EQ(message_of([] { encode("{}"); }), "line 1: \"text\" is missing");
  EXPECT_EQ(message_of([] { encode("[]"); }), "line 1: expected an object, found array");
  EXPECT_EQ(message_of([] { encode("{\"text\": 5}"); }),
            "line 1: \"text\": expected a string, found 5");
  EXPECT_EQ(message_of([] { encode("{\"text\": \"\", \"add_special\": 1}"); }),
            "line 1: \"add_special\": expected true or false, found 1");
  EXPECT_NE(message_of([] { encode("{\"text\""); }).find("line 1: not valid JSON"),
            std::string::npos);
  EXPECT_EQ(message_of([] { decode("{\"ids\": \"a\"}"); }),
            "line 1: \"ids\": expected an array, found string");
  for (const char* id : {"-1", "1.5", "2147483648"}) {
    EXPECT_EQ(message_of([&] { decode("{\"ids\": [" + std::string(id) + "]}"); }),
              "line 1: \"ids\": expected token ids, found " + std::string(id));
  }
}

TEST(TokenizeJsonlTest, WhatCameBeforeABadLineIsAnswered) {
  std::istringstream in("{\"text\": \"a\", \"add_special\": false}\n?");
  std::ostringstream out;
  EXPECT_THROW(encode_jsonl(*make_tokenizer(), in, out), Error);
  EXPECT_EQ(out.str(), "{\"ids\":[3]}\n");
}

TEST(ChatPromptTest, UsesTheModelsTemplateAndSpecialTokens) {
  const auto tokenizer = make_tokenizer();
  const Json body = Json::parse(R"({"messages": [{"role": "user", "content": "ab"}]})");
  const std::string prompt = chat_prompt(body, std::nullopt, tokenizer.get());
  EXPECT_EQ(prompt, "<s>ab</s>");
  // The template wrote the BOS token: encoding the prompt adds no second one.
  const std::vector<int32_t> ids{0, 3, 4, 1};
  EXPECT_EQ(tokenizer->encode(prompt, {.add_special = false}), ids);
  EXPECT_EQ(tokenizer->encode_prompt(prompt), ids);
}

TEST(ChatPromptTest, ATemplateNeedsNoModel) {
  const Json body = Json::parse(R"({"messages": [{"role": "user", "content": "ab"}],
      "add_generation_prompt": true, "chat_template_kwargs": {"bos_token": "<b>", "x": 1}})");
  EXPECT_EQ(chat_prompt(body, "{{ bos_token }}{{ x }}{{ add_generation_prompt }}", nullptr),
            "<b>1True");
  EXPECT_NE(message_of([&] { chat_prompt(body, std::nullopt, nullptr); }).find("--template"),
            std::string::npos);
}

TEST(ChatPromptTest, ARefusalIsTheTemplatesMessage) {
  const Json body = Json::parse(R"({"messages": [{"role": "user", "content": null}]})");
  EXPECT_EQ(message_of([&] { chat_prompt(body, "{{ raise_exception('no') }}", nullptr); }), "no");
}

TEST(ChatPromptTest, ReadsItsFiles) {
  const auto folder = std::filesystem::path(::testing::TempDir());
  const std::string chat = (folder / "chat_prompt_test.json").string();
  const std::string source = (folder / "chat_prompt_test.jinja").string();
  write_file(chat, R"({"messages": [{"role": "user", "content": "é\n"}]})");
  write_file(source, "{% for m in messages %}[{{ m.content }}]{% endfor %}\n");
  EXPECT_EQ(chat_prompt_of_file(chat, source, nullptr), "[é\n]");
  const auto tokenizer = make_tokenizer();
  EXPECT_EQ(chat_prompt_of_file(chat, "", tokenizer.get()), "<s>é\n</s>");
  std::filesystem::remove(chat);
  std::filesystem::remove(source);
  EXPECT_THROW(chat_prompt_of_file(chat, source, nullptr), Error);
}

}  // namespace
}  // namespace minisgl
