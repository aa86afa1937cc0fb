// Scheduler::snapshot(): what it knows, copied out.
#include <algorithm>

#include "scheduler/scheduler.h"

namespace minisgl {
namespace {

std::string_view state_name(const Sequence& sequence) {
  if (sequence.retracting && sequence.holds_pages()) return "retracting";
  constexpr std::string_view kNames[] = {"waiting", "prefill", "decode", "finished"};
  return kNames[static_cast<size_t>(sequence.state)];
}

}  // namespace

RequestSnapshot Scheduler::describe(const Sequence& sequence) const {
  const int64_t locked = sequence.prefix.length();
  RequestSnapshot request;
  request.uid = sequence.req.uid;
  request.state = state_name(sequence);
  request.priority = sequence.priority;
  request.prompt_tokens = sequence.req.prompt_len;
  request.cached_tokens = sequence.cached_tokens;
  request.computed_tokens = sequence.computed_len;
  request.generated_tokens = sequence.generated;
  request.max_tokens = sequence.req.max_device_len;
  request.own_pages = (sequence.allocated_len - locked) / cache_.page_size();
  request.shared_pages = locked / cache_.page_size();
  if (sequence.state != SequenceState::kFinished) request.waits_for = sequence.wait_reason;
  return request;
}

// Those up to the one that stopped the last plan know their own reason; the others are behind it.
void Scheduler::explain_waiting(std::vector<RequestSnapshot>& waiting) const {
  const auto blocker = sequences_.find(policy_.blocker());
  const bool is_blocked =
      blocker != sequences_.end() && blocker->second->state != SequenceState::kFinished;
  bool is_behind = is_blocked && blocker->second->state != SequenceState::kWaiting;
  for (const Sequence* sequence : queues_.waiting) {
    RequestSnapshot request = describe(*sequence);
    request.waited_steps = static_cast<int64_t>(policy_.num_steps() -
                                                std::min(policy_.num_steps(), sequence->queued_at));
    const bool was_considered = request.waited_steps > 0;
    const bool was_reached = request.waits_for != WaitReason::kArrived;
    if (was_considered && (is_behind || !was_reached)) {
      request.waits_for = WaitReason::kBehind;
      request.behind = is_blocked ? policy_.blocker() : -1;
    }
    is_behind = is_behind || (is_blocked && sequence == blocker->second.get());
    waiting.push_back(std::move(request));
  }
}

SchedulerSnapshot Scheduler::snapshot(SnapshotDetail detail) const {
  SchedulerSnapshot snapshot;
  snapshot.running.reserve(queues_.active.size());
  snapshot.waiting.reserve(queues_.waiting.size());
  for (const Sequence* sequence : queues_.active) snapshot.running.push_back(describe(*sequence));
  explain_waiting(snapshot.waiting);
  snapshot.pages = cache_.page_counts();
  snapshot.rows_total = limits_.max_running_requests;
  snapshot.rows_free = table_.num_free();
  history_.append_to(snapshot.last_steps);
  snapshot.counters = counters_;
  snapshot.counters.retracted = policy_.num_retracted();
  if (detail == SnapshotDetail::kPages) {
    const std::vector<const Sequence*> holding(queues_.active.begin(), queues_.active.end());
    cache_.append_page_owners(holding, snapshot.page_owners);
    snapshot.prefix_tree = cache_.prefix_cache().snapshot();
  }
  return snapshot;
}

}  // namespace minisgl
