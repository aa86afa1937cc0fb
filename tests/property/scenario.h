// A random life of a scheduler: requests, aborts and flushes at given steps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/step_runner.h"
#include "scheduler/config.h"

namespace minisgl::testing {

struct Event {
  enum class Kind { kSubmit, kAbort, kFlush, kFail };
  Kind kind = Kind::kSubmit;
  int64_t at_step = 0;
  int64_t uid = 0;
  std::vector<int32_t> prompt{};
  int64_t max_tokens = 1;
  std::vector<int32_t> stop_ids{};
  int priority = 0;
  uint64_t salt = 0;
  bool logprobs = false, prompt_logprobs = false;
};

struct Scenario {
  uint64_t seed = 0;
  StepRunner::Limits limits;
  SchedulerConfig config;
  std::vector<Event> events;  // in order of at_step
};

// Everything in it follows from the seed.
Scenario random_scenario(uint64_t seed);

struct RunResult {
  std::optional<std::string> failure;  // what went wrong, and at which step
  int64_t steps = 0;                   // that computed something
  int64_t retracted = 0;
  int64_t mixed_steps = 0;
  int64_t cached_tokens = 0;
};

// Plays it to the end, checking after every step that all invariants hold, and of every request
// that it gets exactly the tokens it would get alone and exactly one finished reply.
RunResult play(const Scenario& scenario);

// Leaves out events as long as it still fails.
Scenario minimised(Scenario scenario);
// As text, to be read and repeated.
std::string describe(const Scenario& scenario);

}  // namespace minisgl::testing
