// The tokenizer.json files of the big families against the ids that Hugging Face gives.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "goldens.h"
#include "tokenizer/detokenizer.h"
#include "tokenizer/golden_cases.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"

namespace minisgl {
namespace {

namespace fs = std::filesystem;
using testing::goldens_dir;
using testing::ids_of;
using testing::read_jsonl;

// A family's files, unpacked; removed with the object.
class UnpackedTokenizer {
 public:
  explicit UnpackedTokenizer(const fs::path& packed) {
    std::string name = (fs::temp_directory_path() / "minisgl_tokenizer_XXXXXX").string();
    if (!mkdtemp(name.data())) return;
    folder_ = name;
    const std::string command =
        "xz -dc '" + (packed / "tokenizer.json.xz").string() + "' > '" + name + "/tokenizer.json'";
    ok_ = std::system(command.c_str()) == 0;
    fs::copy(packed / "tokenizer_config.json", folder_);
  }
  ~UnpackedTokenizer() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  bool ok() const { return ok_; }
  fs::path folder() const { return folder_; }

 private:
  fs::path folder_;
  bool ok_ = false;
};

class JsonGoldens : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const auto goldens = goldens_dir();
    if (!goldens) GTEST_SKIP() << "set MINISGL_GOLDENS";
    const fs::path packed = fs::path(*goldens) / ".." / "tokenizers" / GetParam();
    cases_ = *goldens + "/tokenizers/" + GetParam() + ".jsonl";
    if (!fs::exists(packed)) GTEST_SKIP() << packed << " is not there";
    unpacked_ = std::make_unique<UnpackedTokenizer>(packed);
    ASSERT_TRUE(unpacked_->ok()) << "xz could not unpack " << packed;
  }
  std::unique_ptr<UnpackedTokenizer> unpacked_;
  std::string cases_;
};

TEST_P(JsonGoldens, AllCasesAreEqual) {
  const auto tokenizer = load_tokenizer(unpacked_->folder());
  int count = 0;
  for (const Json& line : read_jsonl(cases_)) {
    if (line["kind"] != "encode") continue;
    const std::string text = line["text"];
    const auto ids = ids_of(line["ids"]);
    EXPECT_EQ(tokenizer->encode(text, {.add_special = false}), ids) << text;
    EXPECT_EQ(tokenizer->encode(text), ids_of(line["ids_special"])) << text;
    EXPECT_EQ(tokenizer->decode(ids, {.skip_special = false}), line["decoded"]) << text;
    EXPECT_EQ(tokenizer->decode(ids), line["decoded_skip"]) << text;
    ++count;
  }
  EXPECT_GE(count, 442);
}

TEST_P(JsonGoldens, AStreamGivesTheSameTextInWholeCharacters) {
  const auto tokenizer = load_tokenizer(unpacked_->folder());
  for (const Json& line : read_jsonl(cases_)) {
    if (line["kind"] != "encode") continue;
    Detokenizer detokenizer(*tokenizer, {.skip_special = false});
    std::string text;
    for (const int32_t id : ids_of(line["ids"])) {
      const std::string piece = detokenizer.push(id);
      EXPECT_TRUE(is_valid_utf8(piece));
      text += piece;
    }
    text += detokenizer.finish();
    EXPECT_EQ(text, line["decoded"]);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, JsonGoldens, ::testing::Values("qwen3", "deepseek_v3"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace minisgl
