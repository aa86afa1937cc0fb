#include "utils/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <vector>

namespace minisgl {
namespace {

class ThreadPoolTest : public testing::TestWithParam<int> {};

TEST_P(ThreadPoolTest, RunsEveryTaskExactlyOnce) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.size(), GetParam());
  for (const int64_t num_tasks : {0, 1, 2, 3, 7, 64, 1000}) {
    std::vector<std::atomic<int>> runs(static_cast<size_t>(num_tasks));
    pool.parallel_for(num_tasks, [&](int64_t task) { ++runs[static_cast<size_t>(task)]; });
    for (const auto& count : runs) ASSERT_EQ(count, 1);
  }
}

TEST_P(ThreadPoolTest, ShowsTheCallerWhatTheTasksWrote) {
  ThreadPool pool(GetParam());
  std::vector<int64_t> values(257);
  int64_t expected = 0;
  for (int round = 0; round < 500; ++round) {
    pool.parallel_for(257, [&](int64_t task) { values[static_cast<size_t>(task)] += task; });
    expected += 257 * 256 / 2;
    ASSERT_EQ(std::accumulate(values.begin(), values.end(), int64_t{0}), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, ThreadPoolTest, testing::Values(1, 2, 3, 8));

TEST(ThreadPool, TakesTheTasksThatASleepingTeamDoesNot) {
  ThreadPool pool(4);
  std::atomic<int64_t> sum = 0;
  for (int round = 0; round < 20; ++round) {
    // Long enough for the workers to go to sleep between jobs.
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
    while (std::chrono::steady_clock::now() < until) {
    }
    pool.parallel_for(10, [&](int64_t task) { sum += task; });
  }
  EXPECT_EQ(sum, 20 * 45);
}

TEST(ThreadPoolDeathTest, EndsTheProcessWhenATaskThrows) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        ThreadPool pool(2);
        pool.parallel_for(2, [](int64_t) { throw 1; });
      },
      "");
}

}  // namespace
}  // namespace minisgl
