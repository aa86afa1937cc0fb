#include "engine/memory_plan.h"

#include <gtest/gtest.h>

#include "utils/error.h"

namespace minisgl {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

// Qwen3-0.6B in bfloat16: 114,688 bytes a token.
KVPoolConfig qwen3(int64_t page_size) {
  return {.num_layers = 28,
          .page_size = page_size,
          .num_kv_heads = 8,
          .head_dim = 128,
          .dtype = DType::kBFloat16};
}

EngineConfig config_with(int64_t page_size) {
  EngineConfig config;
  config.page_size = page_size;
  return config;
}

TEST(MemoryPlan, TheCpuPoolIsTwoGiBAtMost) {
  const MemoryPlan plan =
      plan_memory(config_with(1), qwen3(1), 40960, 24 * kGiB, kGiB, /*is_cpu=*/true);
  EXPECT_EQ(plan.num_pages, 2 * kGiB / 114688 - 1);
  EXPECT_LE(plan.pool_bytes, 2 * kGiB);
  EXPECT_NE(plan.explanation.find("18723 pages"), std::string::npos) << plan.explanation;
}

TEST(MemoryPlan, AGpuPoolIsTheRatioOfMemoryLessTheWeights) {
  const MemoryPlan plan = plan_memory(config_with(16), qwen3(16), 40960, 24 * kGiB, kGiB, false);
  const auto room = static_cast<int64_t>(0.9 * 24 * kGiB) - kGiB;
  EXPECT_EQ(plan.num_pages, room / (16 * 114688) - 1);
}

TEST(MemoryPlan, NoMorePagesThanTheRequestsCanUse) {
  EngineConfig config = config_with(16);
  config.max_running_requests = 2;
  EXPECT_EQ(plan_memory(config, qwen3(16), 100, 24 * kGiB, 0, true).num_pages, 2 * 7);
}

TEST(MemoryPlan, NumPagesIsTakenAtItsWordOrRefused) {
  EngineConfig config = config_with(1);
  config.num_pages = 100;
  EXPECT_EQ(plan_memory(config, qwen3(1), 4096, 24 * kGiB, 0, true).num_pages, 100);
  config.num_pages = 1 << 30;
  EXPECT_THROW(plan_memory(config, qwen3(1), 4096, 24 * kGiB, 0, true), Error);
}

TEST(MemoryPlan, TooLittleMemorySaysTheNumbers) {
  try {
    plan_memory(config_with(1), qwen3(1), 4096, kGiB, 2 * kGiB, true);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kResource);
    EXPECT_NE(std::string(error.what()).find("2.15 GB"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find(" 0 pages"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace minisgl
