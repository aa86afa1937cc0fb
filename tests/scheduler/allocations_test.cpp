// A scheduling step in the steady state takes no memory from the heap.
#include <gtest/gtest.h>

#include "attention/counted_allocations.h"
#include "engine/null_runner.h"
#include "scheduler/scheduler.h"

namespace minisgl::testing {
namespace {

constexpr int64_t kRequests = 256;
constexpr int64_t kPrompt = 32;

GenerateRequest request_of(int64_t uid) {
  GenerateRequest request;
  request.uid = uid;
  request.input_ids.assign(static_cast<size_t>(kPrompt), static_cast<int32_t>(uid));
  request.sampling_params.max_tokens = 512;
  return request;
}

class SchedulerAllocations : public ::testing::TestWithParam<SchedulerConfig> {};

TEST_P(SchedulerAllocations, DecodeStepsTakeNone) {
  NullRunner runner({.num_pages = kRequests * 64,
                     .page_size = 16,
                     .max_seq_len = 1024,
                     .max_running_requests = kRequests,
                     .max_prefill_tokens = kRequests * kPrompt,
                     .vocab_size = 1000});
  Scheduler scheduler(runner, GetParam());
  std::vector<Reply> replies;
  for (int64_t uid = 0; uid < kRequests; ++uid) scheduler.submit(request_of(uid), replies);
  for (int step = 0; step < 100; ++step) {
    scheduler.step(replies);
    replies.clear();
  }
  ASSERT_EQ(scheduler.num_running(), kRequests);
  const int64_t before = num_allocations();
  for (int step = 0; step < 200; ++step) {
    scheduler.step(replies);
    ASSERT_EQ(replies.size(), static_cast<size_t>(kRequests));
    replies.clear();
  }
  EXPECT_EQ(num_allocations(), before);
}

INSTANTIATE_TEST_SUITE_P(Modes, SchedulerAllocations,
                         ::testing::Values(SchedulerConfig{}, SchedulerConfig{.overlap = false},
                                           SchedulerConfig{
                                               .schedule = SchedulePolicy::kPrefillFirst},
                                           SchedulerConfig{.admission = AdmissionPolicy::kReserve},
                                           SchedulerConfig{.cache_type = "naive"}));

}  // namespace
}  // namespace minisgl::testing
