// Folders and files, and what is said about wrong ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "goldens.h"
#include "tokenizer/tokenizer.h"
#include "utils/error.h"
#include "utils/files.h"
#include "utils/log.h"

namespace minisgl {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// A folder that goes with the test.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "minisgl_folder_XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder& file(const std::string& name, const std::string& content) {
    fs::create_directories((fs::path(path_) / name).parent_path());
    write_file(path_ + "/" + name, content);
    return *this;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Bytes a and b, merged; BOS and EOS are added tokens.
constexpr const char* kTiny = R"({
  "added_tokens": [{"id": 3, "content": "<s>", "special": true, "normalized": false},
                   {"id": 4, "content": "</s>", "special": true, "normalized": false}],
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
  "decoder": {"type": "ByteLevel"},
  "post_processor": {"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [3], "tokens": ["<s>"]}}},
  "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})";

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "(no error)";
}

std::string load_error(const std::string& json) {
  return message_of([&] { make_json_tokenizer(json, "", "tokenizer.json"); });
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(LoadTokenizer, ReadsAFolderWithItsConfigAndTemplates) {
  Folder folder;
  folder.file("tokenizer.json", kTiny)
      .file("tokenizer_config.json", R"({"bos_token": {"content": "<s>"}, "eos_token": "</s>",
             "pad_token": null, "chat_template": "from the config"})")
      .file("additional_chat_templates/tool_use.jinja", "with tools");
  const auto tokenizer = load_tokenizer(folder.path());
  EXPECT_EQ(tokenizer->encode("ab"), (std::vector<int32_t>{3, 2}));
  EXPECT_EQ(tokenizer->encode("ab", {.add_special = false}), (std::vector<int32_t>{2}));
  EXPECT_EQ(tokenizer->info().bos_id, 3);
  EXPECT_EQ(tokenizer->info().eos_id, 4);
  EXPECT_EQ(tokenizer->info().end_ids, (std::vector<int32_t>{4}));
  EXPECT_TRUE(tokenizer->info().adds_bos);
  EXPECT_EQ(tokenizer->bos_token(), "<s>");
  EXPECT_EQ(tokenizer->vocab_size(), 5);
  EXPECT_TRUE(tokenizer->is_special(3));
  EXPECT_FALSE(tokenizer->is_special(2));
  EXPECT_EQ(tokenizer->token_to_id("</s>"), 4);
  EXPECT_EQ(tokenizer->token_to_id("nothing"), -1);
  EXPECT_EQ(tokenizer->info().chat_template, "from the config");
  ASSERT_EQ(tokenizer->info().named_templates.size(), 1u);
  EXPECT_EQ(tokenizer->info().named_templates[0].second, "with tools");
}

TEST(LoadTokenizer, ATemplateFileGoesBeforeTheConfig) {
  Folder folder;
  folder.file("tokenizer.json", kTiny)
      .file("tokenizer_config.json", R"({"chat_template": "from the config"})")
      .file("chat_template.jinja", "from the file");
  EXPECT_EQ(load_tokenizer(folder.path())->info().chat_template, "from the file");
}

TEST(LoadTokenizer, ChoosesTheDefaultOfSeveralTemplates) {
  const auto tokenizer = make_json_tokenizer(
      kTiny,
      R"({"chat_template": [{"name": "rag", "template": "r"}, {"name": "default", "template": "d"}]})",
      "tokenizer.json");
  EXPECT_EQ(tokenizer->info().chat_template, "d");
  EXPECT_EQ(tokenizer->info().named_templates.size(), 1u);
}

TEST(LoadTokenizer, TheConfigAddsTokensAndMarksSpecialOnes) {
  const auto tokenizer = make_json_tokenizer(
      kTiny,
      R"({"added_tokens_decoder": {"7": {"content": "<think>", "special": false}},
          "extra_special_tokens": ["ab"]})",
      "tokenizer.json");
  EXPECT_EQ(tokenizer->encode("b<think>b", {.add_special = false}),
            (std::vector<int32_t>{1, 7, 1}));
  EXPECT_TRUE(tokenizer->is_special(2));
  EXPECT_FALSE(tokenizer->is_special(7));
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{7, 2, 1}), "<think>b");
}

TEST(LoadTokenizer, WithoutConfigJsonTheLlamaClassDecides) {
  Folder folder;
  folder.file("tokenizer.json", kTiny)
      .file("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizerFast"})");
  std::string logged;
  const Logger log =
      Logger::to_sink(LogLevel::kWarn, [&](LogLevel, std::string_view line) { logged += line; });
  EXPECT_EQ(load_tokenizer(folder.path(), log)->encode("a b", {.add_special = false}),
            (std::vector<int32_t>{2}));
  EXPECT_THAT(logged, HasSubstr("LlamaTokenizerFast"));
  // Named itself, or beside a model, the file is followed.
  logged.clear();
  EXPECT_EQ(
      load_tokenizer(folder.path() + "/tokenizer.json", log)->encode("a b", {.add_special = false}),
      (std::vector<int32_t>{0, 1}));
  folder.file("config.json", "{}");
  EXPECT_EQ(load_tokenizer(folder.path(), log)->encode("a b", {.add_special = false}),
            (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(logged, "");
}

TEST(LoadTokenizer, SaysWhatIsMissing) {
  const Folder folder;
  EXPECT_THAT(message_of([&] { load_tokenizer(folder.path()); }),
              HasSubstr("neither tokenizer.json nor tokenizer.model"));
  EXPECT_THAT(message_of([&] { load_tokenizer(folder.path() + "/vocab.txt"); }),
              HasSubstr("expected tokenizer.json"));
  EXPECT_THROW(load_tokenizer(folder.path() + "/tokenizer.json"), Error);
}

TEST(LoadTokenizer, NamesThePartOfTheFileThatIsNotKnown) {
  const std::string tiny = kTiny;
  EXPECT_EQ(load_error(tiny), "(no error)");
  EXPECT_THAT(
      load_error(replaced(tiny, R"("type": "ByteLevel", "add)", R"("type": "Magic", "add)")),
      HasSubstr("tokenizer.json.pre_tokenizer: 'Magic' is not known"));
  EXPECT_THAT(load_error(replaced(tiny, R"("decoder": {"type": "ByteLevel"})",
                                  R"("decoder": {"type": "CTC"})")),
              HasSubstr("tokenizer.json.decoder: 'CTC'"));
  EXPECT_THAT(load_error(replaced(tiny, R"("type": "BPE")", R"("type": "WordPiece")")),
              HasSubstr("tokenizer.json.model: 'WordPiece'"));
  EXPECT_THAT(load_error(replaced(tiny, R"("type": "TemplateProcessing")", R"("type": "X")")),
              HasSubstr("tokenizer.json.post_processor: 'X'"));
  EXPECT_THAT(
      load_error(replaced(tiny, R"("decoder")", R"("normalizer": {"type": "Nmt"}, "decoder")")),
      HasSubstr("tokenizer.json.normalizer: 'Nmt'"));
  EXPECT_THAT(load_error(replaced(tiny, R"("type": "BPE")", R"("type": "BPE", "dropout": 0.1)")),
              HasSubstr("dropout"));
}

TEST(LoadTokenizer, RefusesFilesThatContradictThemselves) {
  const std::string tiny = kTiny;
  EXPECT_THAT(load_error(replaced(tiny, R"("a b")", R"("a c")")), HasSubstr("token 'c'"));
  EXPECT_THAT(load_error(replaced(tiny, R"("a b")", R"("ab")")),
              HasSubstr("a merge of two tokens"));
  EXPECT_THAT(load_error(replaced(tiny, R"("ab": 2)", R"("ab": 1)")), HasSubstr("twice"));
  EXPECT_THAT(load_error(replaced(tiny, R"("ab": 2)", R"("ab": 2000000000)")), HasSubstr("an id"));
  EXPECT_THAT(load_error(replaced(tiny, R"("ab": 2)", R"("ab": -1)")), HasSubstr("an id"));
  EXPECT_THAT(load_error(replaced(tiny, R"("ids": [3])", R"("ids": [99])")),
              HasSubstr("the id of a token"));
  EXPECT_THAT(load_error(replaced(tiny, R"("id": 4, "content")", R"("id": 1, "content")")),
              HasSubstr("added token '</s>'"));
  EXPECT_THAT(load_error("{"), HasSubstr("not valid JSON"));
  EXPECT_THAT(load_error("[]"), HasSubstr("expected an object"));
  EXPECT_THAT(load_error("{}"), HasSubstr("'model' is missing"));
  EXPECT_THAT(load_error(std::string(5000, '[')), HasSubstr("not valid JSON"));
}

TEST(LoadTokenizer, RefusesSequencesThatNestTooDeep) {
  std::string open, close;
  for (int i = 0; i < 100; ++i) {
    open += R"({"type": "Sequence", "pretokenizers": [)";
    close += "]}";
  }
  EXPECT_THAT(
      load_error(replaced(
          kTiny,
          R"("pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true})",
          R"("pre_tokenizer": )" + open + close)),
      HasSubstr("16 deep"));
}

}  // namespace
}  // namespace minisgl
