// minisgl bench scheduler: what scheduling costs, without a model.
//
// First the scheduler's time a decode step (plan, page allocation, the batch's inputs and metadata,
// replies) against the number of running requests; then match + insert of a long prompt in the
// radix tree against the tree's size. Ends with the same numbers as one JSON line.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <numeric>
#include <vector>

#include "cli/bench.h"
#include "engine/null_runner.h"
#include "kvcache/radix_cache.h"
#include "minisgl/version.h"
#include "scheduler/scheduler.h"
#include "utils/json.h"
#include "utils/random.h"
#include "utils/system.h"

namespace minisgl {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int64_t kWarmUpSteps = 16;
constexpr int64_t kSteps = 200;
constexpr int32_t kVocabulary = 150'000;
constexpr size_t kPromptTokens = 32'768;
constexpr int kInsertions = 30;

struct BenchOptions {
  std::vector<int64_t> requests = {1, 4, 16, 64, 256, 1024, 4096};
  std::vector<int64_t> tree_tokens = {10'000, 100'000, 1'000'000};
  int64_t context = 512;
  int64_t page_size = 1;
};

struct Timing {
  double median_us = 0.0;
  double p99_us = 0.0;
};

double us_between(SteadyClock::time_point begin, SteadyClock::time_point end) {
  return std::chrono::duration<double, std::micro>(end - begin).count();
}

Timing timing_of(std::vector<double> us) {
  std::ranges::sort(us);
  return {us[us.size() / 2], us[us.size() * 99 / 100]};
}

class RandomTokens {
 public:
  std::vector<int32_t> operator()(size_t n) {
    std::vector<int32_t> tokens(n);
    for (int32_t& token : tokens) {
      token = static_cast<int32_t>(random_bits(1, next_++) % uint64_t{kVocabulary});
    }
    return tokens;
  }

 private:
  uint64_t next_ = 0;
};

// Time of a decode step of `num_requests` streams of `context` tokens.
Timing time_decode_steps(int64_t num_requests, const BenchOptions& options) {
  const int64_t tokens = options.context + kWarmUpSteps + kSteps + 8;
  const int64_t pages = (tokens + options.page_size - 1) / options.page_size;
  NullRunner runner({.num_pages = num_requests * pages,
                     .page_size = options.page_size,
                     .max_seq_len = tokens,
                     .max_running_requests = num_requests,
                     .max_prefill_tokens = num_requests * options.context,
                     .vocab_size = kVocabulary});
  Scheduler scheduler(runner, {});
  RandomTokens random;
  std::vector<Reply> replies;
  for (int64_t uid = 0; uid < num_requests; ++uid) {
    GenerateRequest request;
    request.uid = uid;
    request.input_ids = random(static_cast<size_t>(options.context));
    request.sampling_params.max_tokens = tokens;
    scheduler.submit(std::move(request), replies);
  }
  std::vector<double> us;
  for (int64_t step = -kWarmUpSteps; step < kSteps; ++step) {
    const auto begin = SteadyClock::now();
    scheduler.step(replies);
    if (step >= 0) us.push_back(us_between(begin, SteadyClock::now()));
    MINISGL_CHECK(step < 0 || static_cast<int64_t>(replies.size()) == num_requests,
                  "{} replies a step of {} requests", replies.size(), num_requests);
    replies.clear();
  }
  return timing_of(std::move(us));
}

// Time to match and insert a prompt that is new to a tree of `tree_tokens`.
Timing time_insertions(int64_t tree_tokens, const BenchOptions& options) {
  RadixCache cache(options.page_size);
  RandomTokens random;
  int32_t next_location = 0;
  const auto insert = [&](const std::vector<int32_t>& prompt) {
    std::vector<int32_t> locations(prompt.size());
    std::iota(locations.begin(), locations.end(), next_location);
    next_location += static_cast<int32_t>(prompt.size());
    const auto begin = SteadyClock::now();
    cache.match_prefix(std::span(prompt).first(prompt.size() - 1), 0);
    cache.insert_prefix(prompt, locations, 0);
    return us_between(begin, SteadyClock::now());
  };
  for (int64_t tokens = 0; tokens < tree_tokens; tokens += 4096) insert(random(4096));
  std::vector<double> us;
  std::vector<int32_t> freed;
  for (int i = 0; i < kInsertions; ++i) {
    us.push_back(insert(random(kPromptTokens)));
    freed.clear();
    cache.evict(static_cast<int64_t>(kPromptTokens), freed);
  }
  return timing_of(std::move(us));
}

Json to_json(const char* size_name, int64_t size, const Timing& timing) {
  return {{size_name, size}, {"median_us", timing.median_us}, {"p99_us", timing.p99_us}};
}

void bench_scheduler(const BenchOptions& options) {
  Json line = {{"benchmark", "scheduler"},       {"version", kVersion},
               {"machine", cpu_model_name()},    {"context", options.context},
               {"page_size", options.page_size}, {"limit_us_256", 200},
               {"decode_step", Json::array()},   {"match_insert", Json::array()}};
  fmt::print("A decode step, {} tokens of context, pages of {}\n", options.context,
             options.page_size);
  fmt::print("{:>10} {:>12} {:>12} {:>12}\n", "requests", "median us", "p99 us", "ns/request");
  for (const int64_t n : options.requests) {
    const Timing timing = time_decode_steps(n, options);
    fmt::print("{:>10} {:>12.1f} {:>12.1f} {:>12.0f}\n", n, timing.median_us, timing.p99_us,
               1000.0 * timing.median_us / static_cast<double>(n));
    line["decode_step"].push_back(to_json("requests", n, timing));
  }
  fmt::print("\nMatch and insert of a new prompt of {} tokens\n", kPromptTokens);
  fmt::print("{:>10} {:>12} {:>12}\n", "tree", "median us", "p99 us");
  for (const int64_t n : options.tree_tokens) {
    const Timing timing = time_insertions(n, options);
    fmt::print("{:>10} {:>12.1f} {:>12.1f}\n", n, timing.median_us, timing.p99_us);
    line["match_insert"].push_back(to_json("tree_tokens", n, timing));
  }
  fmt::print("\n{}\n", line.dump());
}

}  // namespace

void add_bench_scheduler_command(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand("scheduler", "Cost of scheduling, without a model");
  auto options = std::make_shared<BenchOptions>();
  command->add_option("--requests", options->requests, "Numbers of running requests")
      ->check(CLI::Range(1, 16'384))
      ->capture_default_str();
  command->add_option("--tree-tokens", options->tree_tokens, "Sizes of the radix tree")
      ->check(CLI::Range(0, 100'000'000))
      ->capture_default_str();
  command->add_option("--context", options->context, "Tokens of each running request")
      ->check(CLI::Range(1, 65'536))
      ->capture_default_str();
  command->add_option("--page-size", options->page_size, "Tokens of a page")
      ->check(CLI::IsMember({1, 2, 4, 8, 16, 32, 64, 128, 256}))
      ->capture_default_str();
  command->callback([options] { bench_scheduler(*options); });
}

}  // namespace minisgl
