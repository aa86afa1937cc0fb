#include "engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "engine/golden_model.h"
#include "utils/files.h"

namespace minisgl::testing {
namespace {

using ::testing::HasSubstr;

EngineConfig small_engine() {
  EngineConfig config;
  config.model_path = open_golden("models/qwen3").model();
  config.dtype = "float32";
  config.threads = 1;
  config.max_running_requests = 4;
  config.num_pages = 256;
  return config;
}

void expect_refused(const EngineConfig& config, ErrorKind kind, const std::string& message) {
  try {
    const Engine engine(config);
    FAIL() << "accepted; expected: " << message;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(message));
  }
}

TEST(Engine, RefusesWhatItCannotDoAndSaysWhatItCan) {
  const auto refused = [](auto change, ErrorKind kind, const std::string& message) {
    EngineConfig config = small_engine();
    change(config);
    expect_refused(config, kind, message);
  };
  using enum ErrorKind;
  refused([](EngineConfig& c) { c.dtype = "int3"; }, kInvalidArgument, "bfloat16");
  refused([](EngineConfig& c) { c.page_size = 0; }, kInvalidArgument, "--page-size is 0");
  refused([](EngineConfig& c) { c.max_running_requests = -1; }, kInvalidArgument, "-1");
  const int64_t huge = std::numeric_limits<int64_t>::max();
  refused([=](EngineConfig& c) { c.max_running_requests = huge; }, kInvalidArgument, "1 to");
  refused([=](EngineConfig& c) { c.max_prefill_tokens = huge; }, kInvalidArgument, "1 to");
  refused([=](EngineConfig& c) { c.page_size = huge; }, kInvalidArgument, "1 to");
  refused([](EngineConfig& c) { c.max_seq_len = 100000; }, kInvalidArgument, "512");
  refused([](EngineConfig& c) { c.memory_ratio = 1.5; }, kInvalidArgument, "1.5");
  refused([](EngineConfig& c) { c.attention_backend = "flash"; }, kInvalidArgument, "reference");
  refused([](EngineConfig& c) { c.isa = "avx1024"; }, kInvalidArgument, "avx1024");
  refused([](EngineConfig& c) { c.model_path = "/nowhere"; }, kNotFound, "/nowhere");
}

TEST(Engine, AStepInSteadyStateComputesTheSameWithAndWithoutAGraph) {
  const std::vector<std::vector<int32_t>> prompts = {{1, 2, 3}, {4, 5}, {6}};
  EngineConfig config = small_engine();
  Engine plain(config);
  config.graph_max_bs = 4;
  Engine graph(config);
  EXPECT_EQ(generate_greedy(plain, {}, prompts, 20), generate_greedy(graph, {}, prompts, 20));
}

TEST(Engine, DummyWeightsNeedNothingButAConfig) {
  const std::string dir = ::testing::TempDir() + "/dummy_model";
  std::filesystem::create_directories(dir);
  write_file(dir + "/config.json", read_file(open_golden("models/qwen3").model() + "/config.json"));
  EngineConfig config = small_engine();
  config.model_path = dir;
  config.dummy_weight = true;
  Engine engine(config);
  EXPECT_EQ(generate_greedy(engine, {}, {{1, 2, 3}}, 5).front().size(), 5u);
  EXPECT_EQ(generate_greedy(engine, {}, {{1, 2, 3}}, 5),
            generate_greedy(engine, {}, {{1, 2, 3}}, 5));
}

TEST(Engine, AContextThatCannotFitInMemoryIsRefusedBeforeAnythingIsAllocated) {
  const std::string dir = ::testing::TempDir() + "/endless_context";
  std::filesystem::create_directories(dir);
  std::string json = read_file(open_golden("models/qwen3").model() + "/config.json");
  const auto set = [&json](const std::string& field, const std::string& value) {
    const size_t begin = json.find(':', json.find('"' + field + '"')) + 1;
    json.replace(begin, json.find_first_of(",}", begin) - begin, value);
  };
  set("max_position_embeddings", "1073741824");
  set("head_dim", "256");  // 1 TiB of positions: more than half of any machine's memory
  write_file(dir + "/config.json", json);
  EngineConfig config = small_engine();
  config.model_path = dir;
  config.dummy_weight = true;
  expect_refused(config, ErrorKind::kResource, "--max-seq-len");
  config.max_seq_len = 64;
  EXPECT_EQ(Engine(config).limits().max_seq_len, 64);
}

TEST(GraphBatchSizes, AreOneTwoFourThenEveryEighth) {
  EXPECT_EQ(graph_batch_sizes(0), std::vector<int>{});
  EXPECT_EQ(graph_batch_sizes(1), std::vector<int>{1});
  EXPECT_EQ(graph_batch_sizes(5), (std::vector<int>{1, 2, 4, 5}));
  EXPECT_EQ(graph_batch_sizes(20), (std::vector<int>{1, 2, 4, 8, 16, 20}));
}

}  // namespace
}  // namespace minisgl::testing
