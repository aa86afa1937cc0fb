// Whole models on a GPU: Hugging Face's tokens and logits in float32, and the fast backends against
// `reference` in bfloat16.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "attention/cuda_backends.h"
#include "engine/golden_model.h"
#include "kernel/cuda_plugin.h"
#include "utils/error.h"

namespace minisgl::testing {
namespace {

EngineConfig gpu_engine(const std::string& model) {
  EngineConfig config;
  config.model_path = model;
  config.device = "cuda";
  config.dtype = "float32";
  config.max_running_requests = 8;
  config.max_prefill_tokens = 512;
  config.num_pages = 1024;
  config.threads = 2;
  return config;
}

class CudaGoldenModels : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no NVIDIA GPU here";
  }
};

struct Variant {
  const char* name;
  int64_t page_size;
  int64_t max_prefill_tokens;
  SchedulerConfig scheduler;
  int64_t graph_max_bs = 0;
};

std::vector<Variant> variants() {
  const SchedulerConfig plain{.schedule = SchedulePolicy::kPrefillFirst,
                              .admission = AdmissionPolicy::kReserve,
                              .cache_type = "naive",
                              .overlap = false};
  return {{"page 1, all at once", 1, 512, plain},
          {"page 4, chunks of 7", 4, 7, plain},
          {"page 16, mixed, overlap, radix", 16, 16, SchedulerConfig{}},
          {"page 4, graphs", 4, 512, plain, 8},
          {"page 1, graphs, mixed, overlap, radix, chunks of 5", 1, 5, SchedulerConfig{}, 4}};
}

TEST_P(CudaGoldenModels, GivesHuggingFacesTokensInFloat32) {
  const GoldenModel golden = open_golden(GetParam());
  std::vector<std::vector<int32_t>> prompts;
  for (const GoldenCase& c : golden.cases()) prompts.push_back(c.prompt);
  const auto num_tokens = static_cast<int64_t>(golden.cases().front().greedy.size());
  for (const Variant& variant : variants()) {
    EngineConfig config = gpu_engine(golden.model());
    config.page_size = variant.page_size;
    config.max_prefill_tokens = variant.max_prefill_tokens;
    config.graph_max_bs = variant.graph_max_bs;
    Engine engine(config);
    EXPECT_EQ(engine.config().attention_backend, "reference");
    const auto tokens = generate_greedy(engine, variant.scheduler, prompts, num_tokens);
    for (size_t i = 0; i < prompts.size(); ++i) {
      if (golden.cases()[i].is_void()) continue;
      EXPECT_EQ(tokens[i], golden.cases()[i].greedy) << "case " << i << ", " << variant.name;
    }
  }
}

TEST_P(CudaGoldenModels, GivesHuggingFacesLogitsInFloat32) {
  const GoldenModel golden = open_golden(GetParam());
  Engine engine(gpu_engine(golden.model()));
  double worst = 0.0;
  for (size_t i = 0; i < golden.cases().size(); ++i) {
    std::vector<int32_t> tokens = golden.cases()[i].prompt;
    tokens.insert(tokens.end(), golden.cases()[i].greedy.begin(), golden.cases()[i].greedy.end());
    const std::vector<float> got = logits_of(engine, tokens, 512);
    const GoldenModel::Logits expected = golden.logits(i);
    const int64_t vocab = expected.values.dim(1);
    for (size_t r = 0; r < expected.positions.size(); ++r) {
      const float* want = expected.values.select(static_cast<int64_t>(r)).data<float>();
      const float* have = got.data() + expected.positions[r] * vocab;
      for (int64_t v = 0; v < vocab; ++v) {
        const double scale = std::max(1.0, std::abs(double{want[v]}));
        const double error = std::abs(double{have[v]} - want[v]) / scale;
        if (!(error <= worst)) worst = error;
      }
    }
  }
  std::printf("  %s: worst logit error %.1e\n", GetParam().c_str(), worst);
  EXPECT_LE(worst, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Goldens, CudaGoldenModels, ::testing::ValuesIn(golden_names()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return !std::isalnum(c); },
                               '_');
                           return name;
                         });

// A Qwen3 of random weights with the head dimension that the fast backends are built for.
std::string dummy_model(int head_dim) {
  const auto dir =
      std::filesystem::temp_directory_path() / ("minisgl_cuda_dummy_d" + std::to_string(head_dim));
  std::filesystem::create_directories(dir);
  std::ofstream(dir / "config.json")
      << R"({"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 512,
             "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2,
             "head_dim": )"
      << head_dim << R"(, "intermediate_size": 1024, "vocab_size": 2000,
             "max_position_embeddings": 4096, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0,
             "hidden_act": "silu", "tie_word_embeddings": true, "torch_dtype": "bfloat16",
             "eos_token_id": 1, "bos_token_id": 0})";
  return dir.string();
}

// A long prompt in uneven chunks and some decode steps' worth of single tokens.
TEST(CudaBackends, LogitsInBfloat16AgreeWithTheReference) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no NVIDIA GPU here";
  std::mt19937 random(5);
  std::vector<int32_t> tokens(900);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random() % 2000);
  for (const int head_dim : {64, 128}) {
    EngineConfig config = gpu_engine(dummy_model(head_dim));
    config.dummy_weight = true;
    config.dtype = "bfloat16";
    config.num_pages = 64;
    config.page_size = 16;
    config.attention_backend = "reference";
    std::vector<float> expected;
    {
      Engine engine(config);
      expected = logits_of(engine, tokens, 300);
    }
    for (const std::string backend : {"fi", "fa", "fa,fi", "auto"}) {
      config.attention_backend = backend;
      if (backend.starts_with("fa") && head_dim != 128) {
        EXPECT_THROW(Engine{config}, Error);
        continue;
      }
      Engine engine(config);
      for (const int64_t chunk : {300, 37, 1}) {
        const std::span<const int32_t> part(tokens.data(), chunk == 1 ? 80 : tokens.size());
        const std::vector<float> got = logits_of(engine, {part.begin(), part.end()}, chunk);
        double difference = 0, norm = 0;
        int64_t flipped = 0;
        for (size_t r = 0; r < part.size(); ++r) {
          const auto row = [&](const std::vector<float>& all) {
            return std::span(all).subspan(r * 2000, 2000);
          };
          for (size_t v = 0; v < 2000; ++v) {
            difference += std::pow(double{row(got)[v]} - row(expected)[v], 2);
            norm += std::pow(double{row(expected)[v]}, 2);
          }
          const auto best = std::ranges::max_element(row(expected));
          const auto mine = std::ranges::max_element(row(got));
          flipped += mine - row(got).begin() != best - row(expected).begin();
        }
        const double error = std::sqrt(difference / norm);
        std::printf("  d%d %-6s (%s) chunks of %3d: logit error %.1e, %d of %d argmax differ\n",
                    head_dim, backend.c_str(), engine.config().attention_backend.c_str(),
                    static_cast<int>(chunk), error, static_cast<int>(flipped),
                    static_cast<int>(part.size()));
        EXPECT_LE(error, 2e-2) << backend << ", chunks of " << chunk;
      }
    }
  }
}

// Captured decode steps, padded and not, give the tokens of steps that are launched one by one.
TEST(CudaBackends, GraphsGiveTheSameTokens) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no NVIDIA GPU here";
  std::mt19937 random(6);
  std::vector<std::vector<int32_t>> prompts;
  for (const int length : {5, 200, 33, 64, 1, 310}) {
    for (auto& prompt = prompts.emplace_back(); static_cast<int>(prompt.size()) < length;) {
      prompt.push_back(static_cast<int32_t>(random() % 2000));
    }
  }
  for (const int head_dim : {64, 128}) {
    for (const std::string backend : {"reference", "fi", "fa", "fi,cudnn"}) {
      if (backend == "fa" && head_dim != 128) continue;
      EngineConfig config = gpu_engine(dummy_model(head_dim));
      config.dummy_weight = true;
      config.dtype = "bfloat16";
      config.page_size = 16;
      config.attention_backend = backend;
      std::vector<std::vector<int32_t>> expected;
      for (const int64_t graph_max_bs : {0, 4, 8}) {
        config.graph_max_bs = graph_max_bs;
        Engine engine(config);
        const auto tokens = generate_greedy(engine, SchedulerConfig{}, prompts, 40);
        if (graph_max_bs == 0) expected = tokens;
        EXPECT_EQ(tokens, expected)
            << backend << " d" << head_dim << ", graphs up to " << graph_max_bs;
      }
    }
  }
}

}  // namespace
}  // namespace minisgl::testing
