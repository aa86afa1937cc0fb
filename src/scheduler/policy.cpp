#include "scheduler/policy.h"

#include <algorithm>
#include <cmath>

#include "utils/error.h"
#include "utils/math.h"

namespace minisgl {
namespace {

// The expectation rises when it proved too low and sinks slowly while it holds.
constexpr double kShareAfterRetraction = 0.1;
constexpr double kShareDecay = 0.0005;
constexpr double kLeastShare = 0.1;

}  // namespace

int64_t Policy::most_pages(const Sequence& sequence) const {
  return cache_.pages_for(std::max(sequence.req.prefill_len, sequence.req.max_device_len - 1));
}

int64_t Policy::expected_pages(const Sequence& sequence) const {
  if (config_.admission == AdmissionPolicy::kReserve) return most_pages(sequence);
  const Req& req = sequence.req;
  const auto known = static_cast<int64_t>(req.input_ids.size());
  const auto expected = static_cast<int64_t>(
      std::ceil(expected_share_ * static_cast<double>(req.max_device_len - known)));
  return std::min(most_pages(sequence), cache_.pages_for(known + expected));
}

// Pages that the admitted requests are still expected to ask for.
int64_t Policy::reserved_pages(const SequenceQueues& queues) const {
  int64_t pages = 0;
  for (const Sequence* sequence : queues.active) {
    if (!sequence->wants_step()) continue;
    pages += std::max<int64_t>(
        0, expected_pages(*sequence) - sequence->allocated_len / cache_.page_size());
  }
  return pages;
}

void Policy::plan(SequenceQueues& queues, std::vector<Sequence*>& plan) {
  ++steps_;
  plan.clear();
  wait_reason_ = WaitReason::kNone;
  blocker_ = -1;
  expected_share_ = std::max(kLeastShare, expected_share_ - kShareDecay);
  budget_ = limits_.max_prefill_tokens;
  scored_rows_ = limits_.max_scored_tokens;
  if (config_.schedule == SchedulePolicy::kMixed) {
    add_decodes(queues, plan);
    if (step_limit_ > 0 && !plan.empty()) budget_ = std::min(budget_, step_limit_);
    budget_ = std::max<int64_t>(1, budget_ - static_cast<int64_t>(plan.size()));
    continue_prefills(queues, plan);
    admit(queues, plan);
  } else {
    continue_prefills(queues, plan);
    admit(queues, plan);
    if (plan.empty()) add_decodes(queues, plan);
  }
  // Whoever has to give its pages back may have been planned before that was decided.
  std::erase_if(plan, [](const Sequence* sequence) { return sequence->retracting; });
}

// Oldest first, so that whoever has waited longest is the last to be retracted.
void Policy::add_decodes(SequenceQueues& queues, std::vector<Sequence*>& plan) {
  for (Sequence* sequence : queues.active) {
    if (!sequence->wants_step() || sequence->state != SequenceState::kDecode) continue;
    const bool has_room = make_room(queues, *sequence, sequence->req.device_len);
    sequence->wait_reason = has_room ? WaitReason::kNone : WaitReason::kPages;
    if (has_room) plan.push_back(sequence);
  }
}

// Pages for `length` tokens of `sequence`, taken from the youngest if need be. False: not now.
bool Policy::make_room(SequenceQueues& queues, Sequence& sequence, int64_t length) {
  if (sequence.retracting) return false;
  if (cache_.allocate(sequence, length)) return true;
  // Pages that are about to come back are waited for: of those that retract, or end.
  for (const Sequence* other : queues.active) {
    if (!other->wants_step()) return false;
  }
  queues.active.back()->retracting = true;
  ++num_retracted_;
  expected_share_ = std::min(1.0, expected_share_ + kShareAfterRetraction);
  return false;
}

bool Policy::add_chunk(SequenceQueues& queues, Sequence& sequence, std::vector<Sequence*>& plan) {
  Req& req = sequence.req;
  int64_t chunk = std::min(budget_, req.prefill_len - req.cached_len);
  // A row of logits for each of its tokens: there is room for so many.
  if (req.scores_prompt()) chunk = std::min(chunk, scored_rows_);
  if (chunk <= 0) {
    wait_reason_ = sequence.wait_reason = WaitReason::kBudget;
    return false;
  }
  if (!make_room(queues, sequence, req.cached_len + chunk)) {
    wait_reason_ = sequence.wait_reason = WaitReason::kPages;
    return false;
  }
  req.device_len = req.cached_len + chunk;
  sequence.wait_reason = WaitReason::kNone;
  budget_ -= chunk;
  if (req.scores_prompt()) scored_rows_ -= chunk;
  plan.push_back(&sequence);
  return true;
}

void Policy::continue_prefills(SequenceQueues& queues, std::vector<Sequence*>& plan) {
  for (Sequence* sequence : queues.active) {
    if (sequence->state == SequenceState::kPrefill && sequence->wants_step()) {
      add_chunk(queues, *sequence, plan);
    }
  }
}

// A prefix that is being computed right now will be in the cache soon: computing it twice costs
// more than waiting for it.
bool Policy::shares_with_a_prefill(const SequenceQueues& queues, const Sequence& sequence,
                                   int64_t matched) const {
  if (config_.cache_type == "naive") return false;
  const std::vector<int32_t>& ids = sequence.req.input_ids;
  for (const Sequence* other : queues.active) {
    if (!other->holds_pages() || other->retracting || other->cache_salt != sequence.cache_salt) {
      continue;
    }
    if (other->computed_len >= other->req.prefill_len) continue;  // all of it is in the cache
    const int64_t coming = std::min(other->req.prefill_len, sequence.matchable_len());
    if (coming <= matched) continue;
    const auto differs =
        std::mismatch(ids.begin(), ids.begin() + coming, other->req.input_ids.begin()).first;
    if (align_down(differs - ids.begin(), cache_.page_size()) > matched) return true;
  }
  return false;
}

WaitReason Policy::try_admit(SequenceQueues& queues, Sequence& sequence) {
  if (!table_.has_free_row()) return WaitReason::kRow;
  const PrefixHandle match = cache_.match(sequence);
  if (shares_with_a_prefill(queues, sequence, match.length)) return WaitReason::kSharedPrefix;
  const PrefixDivergence divergence = cache_.divergence(sequence, match);

  // Locked first: what it matched is not evictable any more when the rest is counted.
  sequence.req.table_idx = table_.allocate();
  cache_.adopt(sequence, match);
  const int64_t needed = expected_pages(sequence) - cache_.pages_for(match.length);
  // Alone it always fits: submission checked that.
  const bool alone = queues.active.empty();
  if (!alone && needed + reserved_pages(queues) > cache_.num_available_pages()) {
    cache_.release(sequence);
    table_.free(sequence.req.table_idx);
    sequence.req.table_idx = -1;
    return WaitReason::kPages;
  }
  Req& req = sequence.req;
  sequence.state = SequenceState::kPrefill;
  sequence.admission = ++admissions_;
  sequence.computed_len = match.length;
  req.cached_len = match.length;
  req.device_len = match.length;
  if (!sequence.counted_cached) {
    sequence.cached_tokens = match.length;
    sequence.counted_cached = true;
    sequence.divergence = divergence;
  }
  table_.write_tokens(req.table_idx, 0, req.input_ids);
  queues.active.push_back(&sequence);
  return WaitReason::kNone;
}

void Policy::order_waiting(SequenceQueues& queues) {
  const auto plain = [](const Sequence* sequence) { return sequence->priority == 0; };
  if (std::all_of(queues.waiting.begin(), queues.waiting.end(), plain)) return;
  const auto urgency = [this](const Sequence& sequence) {
    const auto waited = static_cast<int64_t>(steps_ - std::min(steps_, sequence.queued_at));
    return sequence.priority + waited / config_.aging_steps;
  };
  std::sort(queues.waiting.begin(), queues.waiting.end(),
            [&](const Sequence* a, const Sequence* b) {
              const int64_t ua = urgency(*a), ub = urgency(*b);
              return ua != ub ? ua > ub : a->arrival < b->arrival;
            });
}

void Policy::block(Sequence& sequence, WaitReason reason) {
  wait_reason_ = sequence.wait_reason = reason;
  blocker_ = sequence.req.uid;
}

// First come, first served: whoever does not fit stops those behind it. Only a request that waits
// for a prefix under computation lets others pass, since it holds nothing up.
void Policy::admit(SequenceQueues& queues, std::vector<Sequence*>& plan) {
  order_waiting(queues);
  size_t at = 0;
  while (at < queues.waiting.size() && budget_ > 0) {
    Sequence& sequence = *queues.waiting[at];
    const WaitReason reason = try_admit(queues, sequence);
    if (reason == WaitReason::kSharedPrefix) {
      wait_reason_ = sequence.wait_reason = reason;
      ++at;
      continue;
    }
    if (reason != WaitReason::kNone) {
      block(sequence, reason);
      return;
    }
    queues.waiting.erase(queues.waiting.begin() + static_cast<std::ptrdiff_t>(at));
    if (!add_chunk(queues, sequence, plan)) {
      blocker_ = sequence.req.uid;
      return;
    }
  }
  if (at < queues.waiting.size()) block(*queues.waiting[at], WaitReason::kBudget);
}

}  // namespace minisgl
