// Which requests the next step computes, and how much of each: queues, pages and a token budget in,
// a plan out. Decides by counts and order alone (no clock, no pointers), so that the same requests
// give the same plans everywhere.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "engine/step_runner.h"
#include "scheduler/cache_manager.h"
#include "scheduler/config.h"
#include "scheduler/sequence.h"
#include "scheduler/table.h"

namespace minisgl {

// Requests that wait and those that hold pages; the policy moves them from one to the other.
struct SequenceQueues {
  std::deque<Sequence*> waiting;  // in the order in which they will be considered
  std::vector<Sequence*> active;  // in order of admission: the last is the youngest
};

class Policy {
 public:
  Policy(const SchedulerConfig& config, const StepRunner::Limits& limits, TableManager& table,
         CacheManager& cache)
      : config_(config), limits_(limits), table_(table), cache_(cache) {}

  // Fills `plan` with the sequences of the next step, their device_len set to the end of this
  // step's tokens, their pages allocated; empty when nothing can be computed now. Sequences that it
  // marks `retracting` give their pages back once no launched step mentions them.
  void plan(SequenceQueues& queues, std::vector<Sequence*>& plan);

  // From now on, of a step that running streams wait for: its tokens, at least one of a prompt.
  void limit_tokens(int64_t tokens) { step_limit_ = tokens; }

  // Pages that one request may need at most: those of all tokens but the last.
  int64_t most_pages(const Sequence& sequence) const;
  uint64_t num_steps() const { return steps_; }
  // Requests retracted since the start.
  int64_t num_retracted() const { return num_retracted_; }
  // Why the last plan left requests waiting, and the uid of the one that stopped those behind it;
  // -1: none did.
  WaitReason last_wait_reason() const { return wait_reason_; }
  int64_t blocker() const { return blocker_; }

 private:
  void add_decodes(SequenceQueues& queues, std::vector<Sequence*>& plan);
  void continue_prefills(SequenceQueues& queues, std::vector<Sequence*>& plan);
  void admit(SequenceQueues& queues, std::vector<Sequence*>& plan);
  bool make_room(SequenceQueues& queues, Sequence& sequence, int64_t length);
  bool add_chunk(SequenceQueues& queues, Sequence& sequence, std::vector<Sequence*>& plan);
  WaitReason try_admit(SequenceQueues& queues, Sequence& sequence);
  bool shares_with_a_prefill(const SequenceQueues& queues, const Sequence& sequence,
                             int64_t matched) const;
  int64_t expected_pages(const Sequence& sequence) const;
  int64_t reserved_pages(const SequenceQueues& queues) const;
  void order_waiting(SequenceQueues& queues);
  void block(Sequence& sequence, WaitReason reason);

  static constexpr double kInitialShare = 0.5;

  SchedulerConfig config_;
  StepRunner::Limits limits_;
  TableManager& table_;
  CacheManager& cache_;
  int64_t step_limit_ = 0;   // 0: none
  int64_t budget_ = 0;       // tokens of prefill that this step still takes
  int64_t scored_rows_ = 0;  // of them, tokens of requests that want prompt_logprobs
  uint64_t steps_ = 0;       // the clock of aging
  uint64_t admissions_ = 0;
  int64_t num_retracted_ = 0;
  double expected_share_ = kInitialShare;  // of max_tokens that a request is expected to use
  WaitReason wait_reason_ = WaitReason::kNone;
  int64_t blocker_ = -1;
};

}  // namespace minisgl
