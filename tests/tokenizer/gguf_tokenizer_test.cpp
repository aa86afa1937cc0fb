#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "goldens.h"
#include "tokenizer/golden_cases.h"
#include "tokenizer/tokenizer.h"
#include "utils/gguf.h"

namespace minisgl {
namespace {

using testing::goldens_dir;
using testing::ids_of;
using testing::read_jsonl;

// Where `make run` puts the default model, or MINISGL_SMOLLM2.
std::optional<std::string> smollm2_path() {
  const char* named = std::getenv("MINISGL_SMOLLM2");
  const std::string path =
      named ? named : MINISGL_SOURCE_DIR "/build/models/SmolLM2-135M-Instruct.Q4_1.gguf";
  if (!std::filesystem::exists(path)) return std::nullopt;
  return path;
}

TEST(GgufTokenizer, GivesTheReferenceIdsForSmolLM2) {
  const auto model = smollm2_path();
  const auto goldens = goldens_dir();
  if (!model || !goldens) GTEST_SKIP() << "set MINISGL_SMOLLM2 and MINISGL_GOLDENS";
  const auto tokenizer = make_gguf_tokenizer(GgufFile::open(*model));
  for (const Json& line : read_jsonl(*goldens + "/smollm2/tokenizer.jsonl")) {
    const std::string text = line["text"];
    const auto ids = ids_of(line["ids"]);
    EXPECT_EQ(tokenizer->encode(text), ids) << text;
    EXPECT_EQ(tokenizer->encode(text, {.parse_special = false}), ids_of(line["ids_no_special"]))
        << text;
    EXPECT_EQ(tokenizer->decode(ids, {.skip_special = false}), line["decoded"]) << text;
    EXPECT_EQ(tokenizer->decode(ids), line["decoded_skip"]) << text;
  }
  EXPECT_EQ(tokenizer->bos_token(), "<|im_start|>");
  EXPECT_EQ(tokenizer->eos_token(), "<|im_end|>");
  EXPECT_EQ(tokenizer->info().end_ids, (std::vector<int32_t>{2, 0}));
  EXPECT_EQ(tokenizer->vocab_size(), 49152);
  EXPECT_TRUE(tokenizer->info().chat_template.has_value());
}

TEST(GgufTokenizer, GivesTheReferenceIdsForEveryModel) {
  const auto goldens = goldens_dir();
  if (!goldens) GTEST_SKIP() << "set MINISGL_GOLDENS";
  int models = 0;
  for (const auto& folder : std::filesystem::directory_iterator(*goldens + "/gguf/models")) {
    const std::string name = folder.path().filename();
    std::string file = folder.path() / (name + ".gguf");
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
      if (entry.path().string().find("-00001-of-") != std::string::npos) file = entry.path();
    }
    const auto tokenizer = make_gguf_tokenizer(GgufFile::open(file));
    const Json expected = read_json_file(folder.path() / "expected.json")["tokenizer"];
    EXPECT_EQ(tokenizer->info().adds_bos, expected["add_bos"].get<bool>()) << name;
    for (const Json& line : expected["cases"]) {
      const std::string text = line["text"];
      const auto ids = ids_of(line["ids"]);
      EXPECT_EQ(tokenizer->encode(text, {.add_special = false}), ids) << name << ": " << text;
      EXPECT_EQ(tokenizer->decode(ids), line["decoded"]) << name << ": " << text;
    }
    ++models;
  }
  EXPECT_GE(models, 21);
}

}  // namespace
}  // namespace minisgl
