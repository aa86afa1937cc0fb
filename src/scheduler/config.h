// How requests are scheduled. Plain data.
#pragma once

#include <cstdint>
#include <string>

namespace minisgl {

enum class SchedulePolicy : uint8_t {
  kMixed,         // decode rows ride along with prefill chunks within one token budget
  kPrefillFirst,  // a step is prefill if any can be formed, else decode
};

enum class AdmissionPolicy : uint8_t {
  kOptimistic,  // by expected length; the youngest request is retracted when pages run out
  kReserve,     // by the longest it may become
};

struct SchedulerConfig {
  SchedulePolicy schedule = SchedulePolicy::kMixed;
  AdmissionPolicy admission = AdmissionPolicy::kOptimistic;
  std::string cache_type = "radix";  // or "naive"
  bool overlap = true;               // prepare the next step while one runs
  int64_t aging_steps = 64;          // steps of waiting that count as one level of priority
  int64_t max_waiting = 0;           // requests in the queue; 0: no limit
  int64_t max_token_gap_ms = 0;      // between a stream's tokens; bounds prompts' chunks. 0: none
  std::string trace_file{};          // see trace.h; empty: none
};

}  // namespace minisgl
