// Texts and uses that are meant to hurt: huge words, broken bytes, many threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "goldens.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"
#include "utils/error.h"

namespace minisgl {
namespace {

std::unique_ptr<Tokenizer> load(const std::string& name) {
  return load_tokenizer(testing::test_data_dir() + "/tokenizer/" + name);
}

const char* const kAll[] = {"byte_level.json", "mapped_bytes.json", "llama_like.json",
                            "gemma_like.json", "unigram.json",      "unigram_bytes.json",
                            "spm_bpe.model",   "spm_unigram.model", "unk.json"};

// Quadratic work on these would take minutes each.
TEST(HostileText, LongStretchesWithoutABreakAreEncodedInGoodTime) {
  const std::string texts[] = {std::string(200'000, 'a'), std::string(200'000, ' '),
                               std::string(200'000, '\n'), std::string(200'000, '\xF0'),
                               std::string(200'000, '<')};
  for (const char* name : kAll) {
    const auto tokenizer = load(name);
    for (const std::string& text : texts) {
      const auto start = std::chrono::steady_clock::now();
      const auto ids = tokenizer->encode(text);
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      EXPECT_LT(seconds.count(), 20) << name << " " << text[0];
      EXPECT_LE(ids.size(), 3 * text.size() + 4) << name;
    }
  }
}

TEST(HostileText, BytesThatAreNotUtf8AreReadAsReplacementCharacters) {
  for (const char* name : kAll) {
    const auto tokenizer = load(name);
    const std::string broken = "a\xFFz\xE4\xBD";
    EXPECT_EQ(tokenizer->encode(broken), tokenizer->encode(to_valid_utf8(broken))) << name;
  }
}

// A word is encoded the same whether it comes from the cache of a long text or by itself.
TEST(LongText, GivesTheIdsOfItsParts) {
  const auto tokenizer = load("byte_level.json");
  std::string line = "The theory of 1234 naïve things, 你好 don't\n";
  const auto ids = tokenizer->encode(line, {.add_special = false});
  std::string text;
  std::vector<int32_t> expected;
  for (int i = 0; i < 2000; ++i) {
    text += line;
    expected.insert(expected.end(), ids.begin(), ids.end());
  }
  EXPECT_EQ(tokenizer->encode(text, {.add_special = false}), expected);
  EXPECT_EQ(tokenizer->decode(expected), text);
}

TEST(LongText, IsEncodedByManyThreadsAtOnce) {
  const auto tokenizer = load("byte_level.json");
  std::string text;
  for (int i = 0; i < 300; ++i) text += "word" + std::to_string(i % 7) + " <tool> and é 你\n";
  const auto expected = tokenizer->encode(text);
  std::vector<std::thread> threads;
  std::vector<int> equal(8);
  for (size_t t = 0; t < equal.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 5; ++round) {
        equal[t] += tokenizer->encode(text) == expected && tokenizer->decode(expected).size() > 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(equal, ::testing::Each(5));
}

TEST(TokenBytes, AddUpToTheText) {
  for (const char* name : {"byte_level.json", "gemma_like.json"}) {
    const auto tokenizer = load(name);
    const std::string text = "naïve 你好 👩‍👩‍👧 text";
    std::string bytes;
    for (const int32_t id : tokenizer->encode(text, {.add_special = false})) {
      bytes += tokenizer->token_bytes(id);
    }
    EXPECT_EQ(bytes, text) << name;
    EXPECT_EQ(tokenizer->token_bytes(-1), "");
    EXPECT_EQ(tokenizer->token_bytes(1 << 20), "");
  }
}

}  // namespace
}  // namespace minisgl
