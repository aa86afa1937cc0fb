// A million random steps through the scheduler and its caches, with a runner that notices mistakes.
//
// MINISGL_SIMULATION_STEPS sets how many (sanitizer builds take fewer), MINISGL_SIMULATION_SEED
// repeats one scenario.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "property/scenario.h"

namespace minisgl::testing {
namespace {

int64_t from_environment(const char* name, int64_t otherwise) {
  const char* value = std::getenv(name);
  return value ? std::atoll(value) : otherwise;
}

void report(const Scenario& scenario) {
  const Scenario smallest = minimised(scenario);
  ADD_FAILURE() << *play(smallest).failure
                << "\nrepeat with MINISGL_SIMULATION_SEED=" << scenario.seed
                << "; the smallest scenario that still fails:\n"
                << describe(smallest);
}

TEST(SchedulerSimulation, EveryRequestGetsItsTokensAndEveryInvariantHolds) {
  const int64_t one_seed = from_environment("MINISGL_SIMULATION_SEED", -1);
  const int64_t wanted =
      one_seed >= 0 ? 1 : from_environment("MINISGL_SIMULATION_STEPS", 1'000'000);
  // Fresh seeds every time; a failure names its own.
  const uint64_t first = one_seed >= 0 ? static_cast<uint64_t>(one_seed) : std::random_device{}();
  RunResult total;
  for (uint64_t seed = first; total.steps < wanted; ++seed) {
    const Scenario scenario = random_scenario(seed);
    const RunResult result = play(scenario);
    if (result.failure) {
      report(scenario);
      return;
    }
    total.steps += result.steps;
    total.retracted += result.retracted;
    total.mixed_steps += result.mixed_steps;
    total.cached_tokens += result.cached_tokens;
  }
  if (one_seed >= 0) return;
  // The paths that matter were really taken.
  EXPECT_GT(total.retracted, 0);
  EXPECT_GT(total.mixed_steps, 0);
  EXPECT_GT(total.cached_tokens, 0);
  std::printf("%ld steps, %ld mixed, %ld retractions, %ld prompt tokens found in the cache\n",
              total.steps, total.mixed_steps, total.retracted, total.cached_tokens);
}

}  // namespace
}  // namespace minisgl::testing
