// What the engine looks like between two steps: plain data, a copy, for metrics, tests and people.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kvcache/prefix_cache.h"
#include "message/replies.h"
#include "scheduler/wait_reason.h"
#include "utils/json.h"

namespace minisgl {

struct RequestSnapshot {
  int64_t uid = 0;
  std::string_view state;  // "waiting", "prefill", "decode", "retracting", "finished"
  int priority = 0;
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // of the prompt, found in the cache at its first admission
  int64_t computed_tokens = 0;
  int64_t generated_tokens = 0;
  int64_t max_tokens = 0;  // of prompt and answer together
  int64_t own_pages = 0;
  int64_t shared_pages = 0;  // in the prefix cache, locked by it (and perhaps by others)
  int64_t waited_steps = 0;  // since it was queued; 0 when it runs
  WaitReason waits_for = WaitReason::kNone;
  int64_t behind = -1;  // uid that it waits behind, where that is the reason
};

// Consecutive pages of one owner.
struct PageRun {
  static constexpr int64_t kFree = -1;
  static constexpr int64_t kCached = -2;

  int64_t first_page = 0;
  int64_t num_pages = 0;
  int64_t owner = kFree;  // a request's uid, kFree or kCached
};

struct PageCounts {
  int64_t page_size = 0;
  int64_t total = 0;  // = free + cached + owned
  int64_t free = 0;
  int64_t cached = 0;  // in the prefix cache …
  int64_t locked = 0;  // … and of those, in use by requests
  int64_t owned = 0;   // by one request each
};

struct StepSnapshot {
  uint64_t number = 0;
  int64_t requests = 0;
  int64_t prefill_tokens = 0;
  int64_t decode_tokens = 0;
  double schedule_us = 0.0;  // planning and preparing it
  double compute_us = 0.0;   // 0: not finished, or the runner does not say
};

// Since the start.
struct SchedulerCounters {
  int64_t submitted = 0;
  std::array<int64_t, kNumFinishReasons> finished{};  // by FinishReason
  int64_t retracted = 0;
  int64_t steps = 0;
  int64_t prompt_tokens_computed = 0;
  int64_t prompt_tokens_cached = 0;
  int64_t tokens_generated = 0;
};

struct SchedulerSnapshot {
  std::vector<RequestSnapshot> running;  // in order of admission
  std::vector<RequestSnapshot> waiting;  // in the order in which they will be considered
  PageCounts pages;
  int64_t rows_total = 0;
  int64_t rows_free = 0;
  std::vector<StepSnapshot> last_steps;  // oldest first
  SchedulerCounters counters;
  // With SnapshotDetail::kPages only.
  std::vector<PageRun> page_owners;  // every page once, in order
  std::vector<PrefixNodeInfo> prefix_tree;
};

enum class SnapshotDetail : uint8_t {
  kCounts,  // costs as much as there are requests
  kPages,   // as much as there are pages and nodes of the prefix tree, too
};

// The same for a browser or a metrics page.
Json to_json(const SchedulerSnapshot& snapshot);

}  // namespace minisgl
