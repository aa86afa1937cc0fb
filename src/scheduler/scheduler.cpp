#include "scheduler/scheduler.h"

#include <algorithm>
#include <span>
#include <utility>

#include "scheduler/check_sampling.h"
#include "utils/error.h"

namespace minisgl {
namespace {

template <class T>
void require(bool ok, const char* expected, T found) {
  if (!ok) throw_error(ErrorKind::kInvalidArgument, "{}, found {}", expected, found);
}

double us_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double, std::micro>(end - begin).count();
}

bool contains(const std::vector<int32_t>& ids, int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

PositionLogprobs logprobs_of(const Step& step, const LogprobRow& row) {
  const auto first = step.logprobs.begin() + static_cast<std::ptrdiff_t>(row.first);
  return {.token = *first, .top = {first + 1, first + 1 + row.num_top}};
}

// What a step found out about the prompt joins what earlier chunks did.
void receive_prompt_logprobs(Sequence& sequence, const Step& step,
                             std::span<const LogprobRow> rows) {
  for (const LogprobRow& row : rows) {
    if (!row.of_prompt) continue;
    sequence.prompt_logprobs.push_back(logprobs_of(step, row));
    sequence.req.scored_len = row.position;
  }
}

// Tokens that one request may have in all.
int64_t sequence_room(const StepRunner::Limits& limits) {
  return std::min(limits.max_seq_len, limits.num_pages * limits.page_size);
}

}  // namespace

Scheduler::Scheduler(StepRunner& runner, const SchedulerConfig& config)
    : runner_(runner),
      config_(config),
      limits_(runner.limits()),
      table_(runner.token_pool(), limits_.max_running_requests),
      cache_(limits_.num_pages, limits_.page_size, runner.page_table(),
             make_prefix_cache(config.cache_type, limits_.page_size)),
      policy_(config, limits_, table_, cache_) {
  require(config.aging_steps >= 1, "aging_steps must be at least 1", config.aging_steps);
  require(config.max_token_gap_ms >= 0, "--max-token-gap-ms must not be negative",
          config.max_token_gap_ms);
  if (config.max_token_gap_ms > 0 && config.schedule != SchedulePolicy::kMixed) {
    throw_error(ErrorKind::kInvalidArgument,
                "--max-token-gap-ms needs --schedule mixed: otherwise streams wait for whole "
                "prompts");
  }
  if (!config.trace_file.empty()) trace_.emplace(config.trace_file);
}

Scheduler::~Scheduler() {
  for (Launched& launched : steps_) {
    if (!launched.active) continue;
    try {
      runner_.wait(launched.step);
    } catch (const std::exception&) {
      // Nobody is left to be told.
    }
  }
}

void Scheduler::check_request(const GenerateRequest& request) const {
  const auto prompt = static_cast<int64_t>(request.input_ids.size());
  require(!sequences_.contains(request.uid), "request ids must be unique", request.uid);
  if (prompt == 0) {
    throw_error(ErrorKind::kInvalidArgument, "the prompt is empty: at least one token is needed");
  }
  for (const int32_t id : request.input_ids) {
    if (id < 0 || id >= limits_.vocab_size) {
      throw_error(ErrorKind::kInvalidArgument,
                  "prompt token id {} is outside the vocabulary of {} tokens", id,
                  limits_.vocab_size);
    }
  }
  check_sampling(request.sampling_params, limits_.vocab_size);
  require(request.sampling_params.n == 1, "a request is one sample: n must be 1 here",
          request.sampling_params.n);
  const int64_t room = sequence_room(limits_);
  if (prompt >= room) {
    throw_error(ErrorKind::kInvalidArgument,
                "the prompt has {} tokens, at most {} fit beside one answer token; shorten it or "
                "raise --max-seq-len (now {}) or --num-pages (now {} pages of {})",
                prompt, room - 1, limits_.max_seq_len, limits_.num_pages, limits_.page_size);
  }
  if (config_.max_waiting > 0 && num_waiting() >= config_.max_waiting) {
    throw_error(ErrorKind::kResource, "{} requests are waiting already, the limit; try again later",
                num_waiting());
  }
}

void Scheduler::submit(GenerateRequest request, std::vector<Reply>& replies) {
  ++counters_.submitted;
  if (recorder_) recorder_->submitted(request);
  try {
    check_request(request);
  } catch (const Error& error) {
    ++counters_.finished[static_cast<size_t>(FinishReason::kError)];
    replies.push_back({.uid = request.uid,
                       .finished = true,
                       .reason = FinishReason::kError,
                       .rule = EndRule::kRefused,
                       .error_kind = error.kind(),
                       .error = error.what(),
                       .prompt_tokens = static_cast<int64_t>(request.input_ids.size())});
    return;
  }
  auto sequence = std::make_unique<Sequence>();
  Req& req = sequence->req;
  req.uid = request.uid;
  req.sampling_params = std::move(request.sampling_params);
  req.input_ids = std::move(request.input_ids);
  req.prompt_len = req.prefill_len = static_cast<int64_t>(req.input_ids.size());
  req.max_device_len = req.prompt_len + std::min(req.sampling_params.max_tokens,
                                                 sequence_room(limits_) - req.prompt_len);
  // The hot loop appends without allocating.
  req.input_ids.reserve(static_cast<size_t>(req.max_device_len));
  req.eos_token_ids = std::move(request.eos_token_ids);
  if (req.scores_prompt()) {
    sequence->prompt_logprobs.reserve(static_cast<size_t>(req.prompt_len - 1));
  }
  sequence->priority = request.priority;
  sequence->cache_salt = request.cache_salt;
  sequence->deadline = request.deadline;
  num_deadlines_ += sequence->deadline.has_value();
  sequence->arrival = ++arrivals_;
  sequence->queued_at = policy_.num_steps();
  queues_.waiting.push_back(sequence.get());
  if (trace_) trace_->request_is(req.uid, "waiting");
  sequences_.emplace(req.uid, std::move(sequence));
}

void Scheduler::abort(int64_t uid, std::vector<Reply>& replies) {
  const auto found = sequences_.find(uid);
  if (found == sequences_.end() || found->second->state == SequenceState::kFinished) return;
  if (recorder_) recorder_->aborted(uid);
  end_sequence(*found->second, {.reason = FinishReason::kAbort, .rule = EndRule::kAborted},
               replies);
  settle();
}

void Scheduler::time_out(int64_t uid, std::vector<Reply>& replies) {
  const auto found = sequences_.find(uid);
  if (found == sequences_.end() || found->second->state == SequenceState::kFinished) return;
  end_by_deadline(*found->second, replies);
  settle();
}

void Scheduler::end_by_deadline(Sequence& sequence, std::vector<Reply>& replies) {
  if (recorder_) recorder_->timed_out(sequence.req.uid);
  end_sequence(sequence, {.reason = FinishReason::kTimeout, .rule = EndRule::kDeadline}, replies);
}

int64_t Scheduler::flush_cache() {
  if (recorder_) recorder_->flushed();
  return cache_.flush();
}

void Scheduler::expire(std::vector<Reply>& replies) {
  if (num_deadlines_ == 0) return;
  const Clock::time_point now = Clock::now();
  for (const auto& [uid, sequence] : sequences_) {
    if (sequence->state != SequenceState::kFinished && sequence->deadline &&
        *sequence->deadline <= now) {
      end_by_deadline(*sequence, replies);
    }
  }
}

bool Scheduler::step(std::vector<Reply>& replies) {
  expire(replies);
  settle();
  Launched& next = steps_[next_step_];
  Launched& running = steps_[next_step_ ^ 1];
  MINISGL_CHECK(!next.active);
  const Clock::time_point begin = Clock::now();
  if (config_.max_token_gap_ms > 0) {
    limit_tokens(cost_.tokens_within(static_cast<double>(config_.max_token_gap_ms)));
  }
  policy_.plan(queues_, next.sequences);
  if (!next.sequences.empty()) {
    launch(next, begin);
    next_step_ ^= 1;
  }
  if (running.active) finish_step(running, replies);
  if (!config_.overlap && next.active) finish_step(next, replies);
  settle();
  if (recorder_) recorder_->end_turn();
  if (trace_) trace_->flush();
  return !is_idle();
}

void Scheduler::limit_tokens(int64_t tokens) {
  if (tokens == token_limit_) return;
  token_limit_ = tokens;
  if (recorder_) recorder_->limited(tokens);
  policy_.limit_tokens(tokens);
}

void Scheduler::launch(Launched& next, Clock::time_point begin) {
  Batch& batch = next.step.batch;
  batch.reqs.clear();
  batch.phase = Phase::kDecode;
  next.end.clear();
  StepSnapshot& step = history_.begin_step();
  next.number = step.number;
  step.requests = static_cast<int64_t>(next.sequences.size());
  for (Sequence* sequence : next.sequences) {
    Req& req = sequence->req;
    if (sequence->state == SequenceState::kPrefill) {
      batch.phase = Phase::kPrefill;
      step.prefill_tokens += req.extend_len();
      if (trace_) trace_->request_is(req.uid, "prefill");
      if (req.device_len == req.prefill_len) sequence->state = SequenceState::kDecode;
    } else {
      step.decode_tokens += req.extend_len();
    }
    batch.reqs.push_back(&req);
    next.end.push_back(req.device_len);
    if (recorder_) recorder_->planned(req.uid, req.cached_len, req.device_len);
    ++sequence->in_flight;
  }
  ++counters_.steps;
  counters_.prompt_tokens_computed += step.prefill_tokens;
  runner_.prepare(next.step);
  const Clock::time_point end = Clock::now();
  step.schedule_us = us_between(begin, end);
  if (trace_) trace_->planned(step, begin, end);
  runner_.launch(next.step);
  next.active = true;
}

void Scheduler::finish_step(Launched& done, std::vector<Reply>& replies) {
  done.active = false;
  const Clock::time_point begin = Clock::now();
  for (Sequence* sequence : done.sequences) --sequence->in_flight;
  try {
    runner_.wait(done.step);
  } catch (const std::exception& error) {
    for (Sequence* sequence : done.sequences) {
      if (sequence->state == SequenceState::kFinished) continue;
      end_sequence(
          *sequence,
          {.reason = FinishReason::kError, .rule = EndRule::kFailed, .error = error.what()},
          replies);
    }
    return;
  }
  const Clock::time_point wait_end = Clock::now();
  StepSnapshot& step = history_.at(done.number);
  step.compute_us = us_between(done.step.began, done.step.ended);
  cost_.observe(step.prefill_tokens + step.decode_tokens, step.compute_us / 1000.0);
  if (trace_) trace_->computed(step, done.step.began, done.step.ended);
  auto scored = done.step.logprob_rows.cbegin();
  for (size_t i = 0; i < done.sequences.size(); ++i) {
    Sequence& sequence = *done.sequences[i];
    const auto own = scored;
    scored = std::find_if(own, done.step.logprob_rows.cend(), [i](const LogprobRow& row) {
      return row.request != static_cast<int32_t>(i);
    });
    if (sequence.state == SequenceState::kFinished) continue;
    receive_prompt_logprobs(sequence, done.step, {own, scored});
    sequence.computed_len = done.end[i];
    // While the prompt is computed each chunk becomes visible to others; later only the end does.
    if (done.end[i] <= sequence.req.prefill_len) cache_.insert(sequence, done.end[i]);
    const int32_t token = done.step.next_tokens[i];
    if (token < 0) continue;
    Reply reply{.uid = sequence.req.uid, .token = token};
    if (own != scored && !std::prev(scored)->of_prompt) {
      reply.logprobs = logprobs_of(done.step, *std::prev(scored));
    }
    reply.prompt_logprobs = std::move(sequence.prompt_logprobs);
    receive_token(sequence, std::move(reply), replies);
  }
  if (trace_) trace_->received(done.number, begin, wait_end, Clock::now());
}

void Scheduler::receive_token(Sequence& sequence, Reply reply, std::vector<Reply>& replies) {
  Req& req = sequence.req;
  const int32_t token = reply.token;
  req.input_ids.push_back(token);
  ++sequence.generated;
  ++counters_.tokens_generated;
  if (recorder_) recorder_->received(req.uid, token);
  if (trace_) trace_->request_is(req.uid, "decode");
  const SamplingParams& params = req.sampling_params;
  const bool is_eos = !params.ignore_eos && contains(req.eos_token_ids, token);
  const bool stops = is_eos || contains(params.stop_token_ids, token);
  // Counted by what the host has received: a launched step is one ahead.
  const bool is_full = static_cast<int64_t>(req.input_ids.size()) >= req.max_device_len;
  reply.token_is_text = !stops;
  reply.prompt_tokens = req.prompt_len;
  reply.cached_tokens = sequence.cached_tokens;
  reply.completion_tokens = sequence.generated;
  if (!stops && !is_full) {
    replies.push_back(std::move(reply));
    return;
  }
  reply.reason = stops ? FinishReason::kStop : FinishReason::kLength;
  const bool is_long_enough = sequence.generated >= params.max_tokens;
  reply.rule = is_eos           ? EndRule::kEndOfText
               : stops          ? EndRule::kStopToken
               : is_long_enough ? EndRule::kMaxTokens
                                : EndRule::kContextFull;
  end_sequence(sequence, std::move(reply), replies);
}

void Scheduler::end_sequence(Sequence& sequence, Reply reply, std::vector<Reply>& replies) {
  if (sequence.state == SequenceState::kWaiting) {
    std::erase(queues_.waiting, &sequence);
    ended_waiting_.push_back(&sequence);
  }
  num_deadlines_ -= sequence.deadline.has_value();
  ++counters_.finished[static_cast<size_t>(reply.reason)];
  counters_.prompt_tokens_cached += sequence.cached_tokens;
  sequence.state = SequenceState::kFinished;
  reply.uid = sequence.req.uid;
  reply.finished = true;
  if (trace_) trace_->request_ended(reply.uid, end_rule_name(reply.rule));
  reply.prompt_tokens = sequence.req.prompt_len;
  reply.cached_tokens = sequence.cached_tokens;
  reply.completion_tokens = sequence.generated;
  if (sequence.divergence) {
    reply.prefix_agreeing_tokens = sequence.divergence->agreeing_tokens;
    // Its prompt was computed in full for their sake, whatever the cache held.
    reply.prefix_stop = sequence.req.sampling_params.prompt_logprobs
                            ? "prompt logprobs"
                            : prefix_stop_name(sequence.divergence->stop);
  }
  replies.push_back(std::move(reply));
}

// Whatever no launched step mentions any more: finished requests go, retracted ones queue again.
void Scheduler::settle() {
  for (Sequence* sequence : ended_waiting_) sequences_.erase(sequence->req.uid);
  ended_waiting_.clear();
  const auto leaves = [](const Sequence* sequence) {
    return sequence->in_flight == 0 &&
           (sequence->state == SequenceState::kFinished || sequence->retracting);
  };
  size_t kept = 0;
  for (Sequence* sequence : queues_.active) {
    if (leaves(sequence)) {
      leave(*sequence);
    } else {
      queues_.active[kept++] = sequence;
    }
  }
  queues_.active.resize(kept);
}

void Scheduler::leave(Sequence& sequence) {
  cache_.release(sequence);
  table_.free(sequence.req.table_idx);
  sequence.req.table_idx = -1;
  if (sequence.state == SequenceState::kFinished) {
    sequences_.erase(sequence.req.uid);
  } else {
    requeue(sequence);
  }
}

// Its tokens stay, and as much of their K and V as the cache keeps; it resumes where it was.
void Scheduler::requeue(Sequence& sequence) {
  Req& req = sequence.req;
  sequence.retracting = false;
  sequence.state = SequenceState::kWaiting;
  sequence.wait_reason = WaitReason::kPages;
  if (trace_) trace_->request_is(req.uid, "waiting");
  req.prefill_len = static_cast<int64_t>(req.input_ids.size());
  req.cached_len = 0;
  req.device_len = 0;
  sequence.queued_at = policy_.num_steps();
  const auto position =
      std::find_if(queues_.waiting.begin(), queues_.waiting.end(),
                   [&](const Sequence* other) { return other->arrival > sequence.arrival; });
  queues_.waiting.insert(position, &sequence);
}

void Scheduler::check_integrity() const {
  const std::vector<const Sequence*> holding(queues_.active.begin(), queues_.active.end());
  cache_.check_integrity(holding);
  MINISGL_CHECK(table_.num_free() + num_running() == limits_.max_running_requests,
                "{} free rows and {} running requests are not {}", table_.num_free(), num_running(),
                limits_.max_running_requests);
}

}  // namespace minisgl
