#include "property/scenario.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <random>

#include "scheduler/mock_runner.h"
#include "scheduler/scheduler.h"

namespace minisgl::testing {
namespace {

class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  int64_t from(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine_);
  }
  bool chance(int percent) { return from(1, 100) <= percent; }
  template <class T>
  T of(std::initializer_list<T> choices) {
    return choices.begin()[from(0, static_cast<int64_t>(choices.size()) - 1)];
  }

 private:
  std::mt19937_64 engine_;
};

// What a request was promised and what it got so far.
struct Expected {
  const Event* event = nullptr;
  std::vector<int32_t> tokens;  // alone
  size_t received = 0;
  bool aborted = false;
  bool finished = false;
};

class Player {
 public:
  explicit Player(const Scenario& scenario)
      : scenario_(scenario),
        runner_(scenario.limits, scenario.seed),
        scheduler_(runner_, scenario.config) {}

  RunResult play() {
    RunResult result;
    try {
      run();
    } catch (const std::exception& error) {
      result.failure = fmt::format("step {}: {}", step_, error.what());
    }
    result.steps = runner_.num_steps();
    result.retracted = scheduler_.num_retracted();
    result.mixed_steps = runner_.num_mixed_steps();
    result.cached_tokens = cached_tokens_;
    return result;
  }

 private:
  void run() {
    size_t next = 0;
    const std::vector<Event>& events = scenario_.events;
    int64_t idle_turns = 0;
    while (next < events.size() || !scheduler_.is_idle()) {
      while (next < events.size() && events[next].at_step <= step_) apply(events[next++]);
      const int64_t before = runner_.num_steps();
      scheduler_.step(replies_);
      receive();
      scheduler_.check_integrity();
      check_snapshot();
      ++step_;
      // A turn may only wait for the step in flight; two in a row must compute or finish something.
      idle_turns = runner_.num_steps() == before && !scheduler_.is_idle() ? idle_turns + 1 : 0;
      MINISGL_CHECK(idle_turns < 8, "no progress: {} running, {} waiting, {}",
                    scheduler_.num_running(), scheduler_.num_waiting(),
                    wait_reason_name(scheduler_.last_wait_reason()));
    }
    for (const auto& [uid, expected] : expected_) {
      MINISGL_CHECK(expected.finished, "request {} never finished", uid);
    }
    const int64_t limit =
        scenario_.limits.max_prefill_tokens + scenario_.limits.max_running_requests;
    MINISGL_CHECK(runner_.largest_step() <= limit);
  }

  void apply(const Event& event) {
    switch (event.kind) {
      case Event::Kind::kSubmit: {
        Expected& expected = expected_[event.uid];
        expected.event = &event;
        const int64_t room = std::min(scenario_.limits.max_seq_len,
                                      scenario_.limits.num_pages * scenario_.limits.page_size);
        const auto prompt = static_cast<int64_t>(event.prompt.size());
        if (prompt < room) {
          expected.tokens =
              MockRunner::tokens_alone(event.prompt, std::min(event.max_tokens, room - prompt),
                                       event.stop_ids, scenario_.limits.vocab_size);
        }
        GenerateRequest request;
        request.uid = event.uid;
        request.input_ids = event.prompt;
        request.sampling_params.max_tokens = event.max_tokens;
        request.eos_token_ids = event.stop_ids;
        if (event.logprobs) request.sampling_params.logprobs = 0;
        if (event.prompt_logprobs) request.sampling_params.prompt_logprobs = 0;
        request.priority = event.priority;
        request.cache_salt = event.salt;
        scheduler_.submit(std::move(request), replies_);
        break;
      }
      case Event::Kind::kAbort:
        if (const auto found = expected_.find(event.uid); found != expected_.end()) {
          found->second.aborted = true;
        }
        scheduler_.abort(event.uid, replies_);
        break;
      case Event::Kind::kFlush:
        scheduler_.flush_cache();
        break;
      case Event::Kind::kFail:
        runner_.fail_next_step();
        break;
    }
  }

  void receive() {
    for (const Reply& reply : replies_) check(reply);
    replies_.clear();
  }

  void check(const Reply& reply) {
    Expected& expected = expected_.at(reply.uid);
    MINISGL_CHECK(!expected.finished, "request {}: a reply after its last", reply.uid);
    if (reply.token >= 0) {
      MINISGL_CHECK(expected.received < expected.tokens.size(), "request {}: too many tokens",
                    reply.uid);
      MINISGL_CHECK(reply.token == expected.tokens[expected.received],
                    "request {}: token {} is {}, alone it is {}", reply.uid, expected.received,
                    reply.token, expected.tokens[expected.received]);
      check_logprobs(reply, expected);
      ++expected.received;
    } else {
      MINISGL_CHECK(!reply.logprobs && reply.prompt_logprobs.empty());
    }
    if (!reply.finished) return;
    expected.finished = true;
    cached_tokens_ += reply.cached_tokens;
    check_end(reply, expected);
  }

  // The snapshot tells the same story: every page has an owner, every row, every waiting request a
  // reason.
  void check_snapshot() {
    const SchedulerSnapshot snapshot = scheduler_.snapshot(SnapshotDetail::kPages);
    const PageCounts& pages = snapshot.pages;
    int64_t free = 0, cached = 0, owned = 0, cached_tokens = 0, own_pages = 0;
    for (const PageRun& run : snapshot.page_owners) {
      (run.owner == PageRun::kFree     ? free
       : run.owner == PageRun::kCached ? cached
                                       : owned) += run.num_pages;
    }
    for (const PrefixNodeInfo& node : snapshot.prefix_tree) cached_tokens += node.num_tokens;
    for (const RequestSnapshot& request : snapshot.running) own_pages += request.own_pages;
    MINISGL_CHECK(free == pages.free && cached == pages.cached && owned == pages.owned &&
                      own_pages == owned && cached_tokens == cached * pages.page_size,
                  "snapshot: pages free {} {}, cached {} {}, owned {} {} {}", free, pages.free,
                  cached, pages.cached, owned, pages.owned, own_pages);
    MINISGL_CHECK(static_cast<int64_t>(snapshot.running.size()) + snapshot.rows_free ==
                  snapshot.rows_total);
    for (const RequestSnapshot& request : snapshot.waiting) {
      MINISGL_CHECK(request.waits_for != WaitReason::kNone, "request {} waits for nothing",
                    request.uid);
    }
  }

  // As the request alone would get them, each once.
  static void check_logprobs(const Reply& reply, const Expected& expected) {
    const Event& event = *expected.event;
    std::vector<int32_t> tokens = event.prompt;
    tokens.insert(tokens.end(), expected.tokens.begin(),
                  expected.tokens.begin() + static_cast<std::ptrdiff_t>(expected.received + 1));
    const bool first = expected.received == 0;
    if (!event.logprobs && !event.prompt_logprobs) {
      MINISGL_CHECK(!reply.logprobs && reply.prompt_logprobs.empty());
      return;
    }
    const std::vector<float> alone = MockRunner::logprobs_alone(tokens);
    MINISGL_CHECK(reply.logprobs.has_value() == event.logprobs);
    if (event.logprobs) {
      MINISGL_CHECK(reply.logprobs->token.token == reply.token &&
                        reply.logprobs->token.logprob == alone.back(),
                    "request {}: the log-probability of token {} is wrong", reply.uid,
                    expected.received);
    }
    const size_t scored = first && event.prompt_logprobs ? event.prompt.size() - 1 : 0;
    MINISGL_CHECK(reply.prompt_logprobs.size() == scored,
                  "request {}: {} prompt log-probabilities, expected {}", reply.uid,
                  reply.prompt_logprobs.size(), scored);
    for (size_t i = 0; i < scored; ++i) {
      const TokenLogprob& got = reply.prompt_logprobs[i].token;
      MINISGL_CHECK(got.token == event.prompt[i + 1] && got.logprob == alone[i],
                    "request {}: the log-probability of prompt token {} is wrong", reply.uid,
                    i + 1);
    }
  }

  void check_end(const Reply& reply, const Expected& expected) {
    const bool complete = !expected.tokens.empty() && expected.received == expected.tokens.size();
    switch (reply.reason) {
      case FinishReason::kStop:
      case FinishReason::kLength: {
        MINISGL_CHECK(complete, "request {}: ended after {} of {} tokens", reply.uid,
                      expected.received, expected.tokens.size());
        const auto& stops = expected.event->stop_ids;
        const bool stopped =
            std::find(stops.begin(), stops.end(), expected.tokens.back()) != stops.end();
        MINISGL_CHECK(stopped == (reply.reason == FinishReason::kStop));
        break;
      }
      case FinishReason::kAbort:
        MINISGL_CHECK(expected.aborted, "request {}: nobody aborted it", reply.uid);
        break;
      case FinishReason::kError:
        MINISGL_CHECK(expected.tokens.empty() || runner_.has_failed(reply.uid), "request {}: {}",
                      reply.uid, reply.error);
        break;
      default:
        MINISGL_CHECK(false, "request {}: ended by '{}'", reply.uid,
                      finish_reason_name(reply.reason));
    }
    MINISGL_CHECK(reply.completion_tokens == static_cast<int64_t>(expected.received));
  }

  const Scenario& scenario_;
  MockRunner runner_;
  Scheduler scheduler_;
  std::map<int64_t, Expected> expected_;
  std::vector<Reply> replies_;
  int64_t step_ = 0;
  int64_t cached_tokens_ = 0;
};

Event random_request(Dice& dice, const Scenario& scenario,
                     const std::vector<std::vector<int32_t>>& stems, int64_t uid) {
  const StepRunner::Limits& limits = scenario.limits;
  const int64_t room = std::min(limits.max_seq_len, limits.num_pages * limits.page_size);
  Event event;
  event.uid = uid;
  const auto& stem =
      stems[static_cast<size_t>(dice.from(0, static_cast<int64_t>(stems.size()) - 1))];
  const int64_t shared = dice.from(0, static_cast<int64_t>(stem.size()));
  event.prompt.assign(stem.begin(), stem.begin() + shared);
  // Mostly what fits; now and then too long.
  const int64_t longest = dice.chance(2) ? room + 8 : std::max<int64_t>(1, room - 1);
  const int64_t length =
      dice.from(1, std::max<int64_t>(1, dice.chance(50) ? longest / 4 : longest));
  while (static_cast<int64_t>(event.prompt.size()) < length) {
    event.prompt.push_back(static_cast<int32_t>(dice.from(0, limits.vocab_size - 1)));
  }
  event.max_tokens = dice.from(1, dice.chance(70) ? 8 : 64);
  for (int i = 0; i < 2 && dice.chance(40); ++i) {
    event.stop_ids.push_back(static_cast<int32_t>(dice.from(0, limits.vocab_size - 1)));
  }
  event.priority = dice.chance(20) ? static_cast<int>(dice.from(-2, 2)) : 0;
  event.salt = dice.chance(10) ? 7 : 0;
  event.logprobs = dice.chance(20);
  event.prompt_logprobs = dice.chance(15);
  return event;
}

}  // namespace

Scenario random_scenario(uint64_t seed) {
  Dice dice(seed);
  Scenario scenario;
  scenario.seed = seed;
  StepRunner::Limits& limits = scenario.limits;
  limits.page_size = dice.of<int64_t>({1, 4, 16, 64});
  limits.num_pages = dice.from(2, 128 / limits.page_size + 8);
  limits.max_seq_len = dice.from(8, 160);
  limits.max_running_requests = dice.of<int64_t>({1, 2, 5, 16});
  limits.max_prefill_tokens = dice.of<int64_t>({1, 7, 16, 64, 512});
  limits.max_scored_tokens = dice.of<int64_t>({1, 6, 512});
  limits.vocab_size = dice.of<int64_t>({8, 64});
  SchedulerConfig& config = scenario.config;
  config.schedule = dice.of({SchedulePolicy::kMixed, SchedulePolicy::kPrefillFirst});
  config.admission = dice.of({AdmissionPolicy::kOptimistic, AdmissionPolicy::kReserve});
  config.cache_type = dice.chance(75) ? "radix" : "naive";
  config.overlap = dice.chance(60);
  config.aging_steps = dice.of<int64_t>({1, 16, 64});

  std::vector<std::vector<int32_t>> stems(static_cast<size_t>(dice.from(1, 4)));
  for (auto& stem : stems) {
    const int64_t length = dice.from(0, limits.max_seq_len - 1);
    for (int64_t i = 0; i < length; ++i) {
      stem.push_back(static_cast<int32_t>(dice.from(0, limits.vocab_size - 1)));
    }
  }
  const int64_t num_requests = dice.from(1, 60);
  const int64_t spread = dice.of<int64_t>({0, 10, 60});
  for (int64_t uid = 0; uid < num_requests; ++uid) {
    Event event = random_request(dice, scenario, stems, uid);
    event.at_step = dice.from(0, spread);
    if (dice.chance(15)) {
      scenario.events.push_back(
          {.kind = Event::Kind::kAbort, .at_step = event.at_step + dice.from(0, 30), .uid = uid});
    }
    scenario.events.push_back(std::move(event));
  }
  for (int i = 0; i < 2; ++i) {
    if (dice.chance(15)) {
      scenario.events.push_back({.kind = dice.of({Event::Kind::kFlush, Event::Kind::kFail}),
                                 .at_step = dice.from(0, spread + 20)});
    }
  }
  std::stable_sort(scenario.events.begin(), scenario.events.end(),
                   [](const Event& a, const Event& b) { return a.at_step < b.at_step; });
  return scenario;
}

RunResult play(const Scenario& scenario) { return Player(scenario).play(); }

Scenario minimised(Scenario scenario) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (size_t i = 0; i < scenario.events.size(); ++i) {
      Scenario candidate = scenario;
      candidate.events.erase(candidate.events.begin() + static_cast<std::ptrdiff_t>(i));
      if (!play(candidate).failure) continue;
      scenario = std::move(candidate);
      smaller = true;
      break;
    }
  }
  return scenario;
}

std::string describe(const Scenario& scenario) {
  const StepRunner::Limits& limits = scenario.limits;
  std::string text = fmt::format(
      "seed {}: {} pages of {}, max_seq_len {}, {} rows, {} prefill tokens, vocabulary {}; "
      "{}, {}, {}, overlap {}, aging {}\n",
      scenario.seed, limits.num_pages, limits.page_size, limits.max_seq_len,
      limits.max_running_requests, limits.max_prefill_tokens, limits.vocab_size,
      scenario.config.schedule == SchedulePolicy::kMixed ? "mixed" : "prefill-first",
      scenario.config.admission == AdmissionPolicy::kReserve ? "reserve" : "optimistic",
      scenario.config.cache_type, scenario.config.overlap, scenario.config.aging_steps);
  for (const Event& event : scenario.events) {
    constexpr const char* kKinds[] = {"submit", "abort", "flush", "fail"};
    text += fmt::format("  step {}: {} {}", event.at_step, kKinds[static_cast<int>(event.kind)],
                        event.uid);
    if (event.kind == Event::Kind::kSubmit) {
      text += fmt::format(" prompt [{}] max_tokens {} stops [{}] priority {} salt {}{}{}",
                          fmt::join(event.prompt, " "), event.max_tokens,
                          fmt::join(event.stop_ids, " "), event.priority, event.salt,
                          event.logprobs ? " logprobs" : "",
                          event.prompt_logprobs ? " prompt_logprobs" : "");
    }
    text += "\n";
  }
  return text;
}

}  // namespace minisgl::testing
