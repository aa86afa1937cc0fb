// The loop: requests in, steps to the runner, replies out.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/step_runner.h"
#include "message/replies.h"
#include "message/requests.h"
#include "scheduler/cache_manager.h"
#include "scheduler/config.h"
#include "scheduler/policy.h"
#include "scheduler/recorder.h"
#include "scheduler/sequence.h"
#include "scheduler/snapshot.h"
#include "scheduler/step_cost.h"
#include "scheduler/step_history.h"
#include "scheduler/table.h"
#include "scheduler/trace.h"

namespace minisgl {

// Every submitted request gets exactly one finished reply, whatever happens, and none after it.
// One thread. With overlap on, step n + 1 is prepared and launched while n runs, and n's results
// are handled then; a request that ended in n may be part of n + 1 already, whose result for it is
// dropped, and its row and pages go back only when no launched step mentions it.
class Scheduler {
 public:
  Scheduler(StepRunner& runner, const SchedulerConfig& config);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Queues a request, or answers at once why it cannot be served.
  void submit(GenerateRequest request, std::vector<Reply>& replies);
  // Unknown or ended requests are ignored.
  void abort(int64_t uid, std::vector<Reply>& replies);
  // As if its deadline had passed: for a replay.
  void time_out(int64_t uid, std::vector<Reply>& replies);
  // Tokens of a step that running streams wait for; set by max_token_gap_ms, or by a replay.
  void limit_tokens(int64_t tokens);
  // From now on everything is told to `recorder`, which outlives this or is taken off with nullptr.
  void record_to(Recorder* recorder) { recorder_ = recorder; }
  // One turn of the loop; replies are appended. False: nothing is left to do.
  bool step(std::vector<Reply>& replies);
  bool is_idle() const { return sequences_.empty(); }

  int64_t num_waiting() const { return static_cast<int64_t>(queues_.waiting.size()); }
  int64_t num_running() const { return static_cast<int64_t>(queues_.active.size()); }
  int64_t num_retracted() const { return policy_.num_retracted(); }
  WaitReason last_wait_reason() const { return policy_.last_wait_reason(); }
  const CacheManager& cache() const { return cache_; }
  // Prompt tokens computed since the start (not those found in the cache).
  int64_t computed_prompt_tokens() const { return counters_.prompt_tokens_computed; }
  // Everything that no request uses leaves the prefix cache; the number of pages freed.
  int64_t flush_cache();
  // A consistent view of it all, between two steps.
  SchedulerSnapshot snapshot(SnapshotDetail detail) const;
  // Error (internal): the first invariant that does not hold.
  void check_integrity() const;

 private:
  // A launched step with the sequences of its batch.
  struct Launched {
    Step step;
    std::vector<Sequence*> sequences;
    std::vector<int64_t> end;  // each one's device_len in this step
    uint64_t number = 0;       // in the history
    bool active = false;
  };

  void check_request(const GenerateRequest& request) const;
  void launch(Launched& next, Clock::time_point begin);
  void finish_step(Launched& done, std::vector<Reply>& replies);
  void receive_token(Sequence& sequence, Reply reply, std::vector<Reply>& replies);
  void end_sequence(Sequence& sequence, Reply reply, std::vector<Reply>& replies);
  void expire(std::vector<Reply>& replies);
  void end_by_deadline(Sequence& sequence, std::vector<Reply>& replies);
  void settle();
  void leave(Sequence& sequence);
  void requeue(Sequence& sequence);
  RequestSnapshot describe(const Sequence& sequence) const;
  void explain_waiting(std::vector<RequestSnapshot>& waiting) const;

  StepRunner& runner_;
  SchedulerConfig config_;
  StepRunner::Limits limits_;
  TableManager table_;
  CacheManager cache_;
  Policy policy_;
  std::unordered_map<int64_t, std::unique_ptr<Sequence>> sequences_;
  SequenceQueues queues_;
  std::vector<Sequence*> ended_waiting_;  // ended while they held nothing; go at the next settle()
  Launched steps_[2];
  int next_step_ = 0;  // the one to plan into
  uint64_t arrivals_ = 0;
  int64_t num_deadlines_ = 0;
  SchedulerCounters counters_;
  StepHistory history_;
  std::optional<Trace> trace_;
  Recorder* recorder_ = nullptr;
  StepCost cost_;
  int64_t token_limit_ = 0;
};

}  // namespace minisgl
