// The promise of the project: Hugging Face's tokens and logits, whatever the page size, the chunks,
// the company in the batch, the cache, the overlap, the padding and the number of threads.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/golden_model.h"

namespace minisgl::testing {
namespace {

EngineConfig float32_engine(const GoldenModel& golden) {
  EngineConfig config;
  config.model_path = golden.model();
  config.dtype = "float32";
  config.max_running_requests = 8;
  config.num_pages = 1024;
  config.threads = 2;
  return config;
}

std::vector<std::vector<int32_t>> prompts_of(const GoldenModel& golden) {
  std::vector<std::vector<int32_t>> prompts;
  for (const GoldenCase& c : golden.cases()) prompts.push_back(c.prompt);
  return prompts;
}

int64_t tokens_of(const GoldenModel& golden) {
  return static_cast<int64_t>(golden.cases().front().greedy.size());
}

void expect_greedy(const GoldenModel& golden, const std::vector<std::vector<int32_t>>& tokens,
                   const std::string& what) {
  for (size_t i = 0; i < golden.cases().size(); ++i) {
    if (golden.cases()[i].is_void()) continue;
    EXPECT_EQ(tokens[i], golden.cases()[i].greedy) << "case " << i << ", " << what;
  }
}

class GoldenModels : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenModels, OneByOneGivesTheSameTokens) {
  const GoldenModel golden = open_golden(GetParam());
  Engine engine(float32_engine(golden));
  std::vector<std::vector<int32_t>> tokens;
  for (const auto& prompt : prompts_of(golden)) {
    tokens.push_back(generate_greedy(engine, {}, {prompt}, tokens_of(golden)).front());
  }
  expect_greedy(golden, tokens, "one by one");
}

struct Variant {
  const char* name;
  int64_t page_size;
  int64_t max_prefill_tokens;
  int threads;
  int64_t graph_max_bs;
  SchedulerConfig scheduler;
};

std::vector<Variant> variants() {
  const SchedulerConfig plain{.schedule = SchedulePolicy::kPrefillFirst,
                              .admission = AdmissionPolicy::kReserve,
                              .cache_type = "naive",
                              .overlap = false};
  const SchedulerConfig mixed{};  // mixed, optimistic, radix, overlap
  SchedulerConfig mixed_plain = mixed;
  mixed_plain.overlap = false;
  SchedulerConfig overlapped = plain;
  overlapped.overlap = true;
  return {
      {"page 1, all at once", 1, 512, 1, 0, plain},
      {"page 4, chunks of 7", 4, 7, 2, 0, plain},
      {"page 16, mixed, overlap, radix", 16, 16, 3, 0, mixed},
      {"page 1, mixed without overlap", 1, 5, 2, 0, mixed_plain},
      {"page 4, padded graphs", 4, 512, 2, 8, overlapped},
      {"page 16, padded graphs, mixed, chunks of 3", 16, 3, 1, 8, mixed},
  };
}

TEST_P(GoldenModels, OneRaggedBatchGivesTheSameTokensInEveryVariant) {
  const GoldenModel golden = open_golden(GetParam());
  for (const Variant& variant : variants()) {
    EngineConfig config = float32_engine(golden);
    config.page_size = variant.page_size;
    config.max_prefill_tokens = variant.max_prefill_tokens;
    config.threads = variant.threads;
    config.graph_max_bs = variant.graph_max_bs;
    Engine engine(config);
    expect_greedy(golden,
                  generate_greedy(engine, variant.scheduler, prompts_of(golden), tokens_of(golden)),
                  variant.name);
  }
}

TEST_P(GoldenModels, LogitsOfEveryPositionAgree) {
  const GoldenModel golden = open_golden(GetParam());
  Engine engine(float32_engine(golden));
  for (size_t i = 0; i < golden.cases().size(); ++i) {
    std::vector<int32_t> tokens = golden.cases()[i].prompt;
    tokens.insert(tokens.end(), golden.cases()[i].greedy.begin(), golden.cases()[i].greedy.end());
    const std::vector<float> got = logits_of(engine, tokens, 512);
    const GoldenModel::Logits expected = golden.logits(i);
    const int64_t vocab = expected.values.dim(1);
    double worst = 0.0;
    for (size_t r = 0; r < expected.positions.size(); ++r) {
      const float* want = expected.values.select(static_cast<int64_t>(r)).data<float>();
      const float* have = got.data() + expected.positions[r] * vocab;
      for (int64_t v = 0; v < vocab; ++v) {
        const double scale = std::max(1.0, std::abs(static_cast<double>(want[v])));
        worst = std::max(worst, std::abs(static_cast<double>(have[v]) - want[v]) / scale);
      }
    }
    EXPECT_LE(worst, 1e-4) << "case " << i;
  }
}

// The equivalence contract, bit for bit: the same positions in chunks of any size, with any number
// of threads and any page size.
TEST_P(GoldenModels, LogitsAreTheSameBitsForAnyChunkPageAndThreads) {
  const GoldenModel golden = open_golden(GetParam());
  const std::vector<int32_t>& tokens = golden.cases().back().prompt;
  for (const char* dtype : {"float32", "bfloat16"}) {
    EngineConfig config = float32_engine(golden);
    config.dtype = dtype;
    Engine engine(config);
    const std::vector<float> whole = logits_of(engine, tokens, 512);
    for (const int64_t chunk : {1, 3, 16}) {
      EXPECT_EQ(logits_of(engine, tokens, chunk), whole) << dtype << ", chunks of " << chunk;
    }
    config.page_size = 16;
    config.threads = 3;
    Engine other(config);
    EXPECT_EQ(logits_of(other, tokens, 512), whole) << dtype << ", page 16, 3 threads";
  }
}

INSTANTIATE_TEST_SUITE_P(Goldens, GoldenModels, ::testing::ValuesIn(golden_names()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return !std::isalnum(c); },
                               '_');
                           return name;
                         });

}  // namespace
}  // namespace minisgl::testing
