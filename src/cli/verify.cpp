// minisgl verify: whether this model on this machine keeps what the engine promises.
//
// The promise: a request's tokens do not depend on page size, chunk size, cold or warm prefix
// cache, cache type, overlap, graph padding, schedule and admission mode, threads or batch company.
// Every row of the table changes one of them against a baseline that changes none: each prompt
// alone, whole, without a cache. On the CPU the logits after the prompt are compared bit by bit,
// too.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/loading.h"
#include "cli/options.h"
#include "engine/engine.h"
#include "llm/options.h"
#include "scheduler/scheduler.h"
#include "utils/json.h"
#include "utils/random.h"

namespace minisgl {
namespace {

using Tokens = std::vector<int32_t>;

struct VerifyOptions {
  LLMOptions llm;
  int64_t num_tokens = 16;
  std::string reference;
};

// A way to run the same prompts: an engine, and what a scheduler does with it.
struct Variant {
  std::string name;
  std::function<void(EngineConfig&)> engine;
  std::function<void(SchedulerConfig&)> scheduler;
  bool one_by_one = false;
  bool warm = false;  // a second time, with the first one's cache
};

struct Results {
  std::vector<Tokens> tokens;              // of each prompt
  std::vector<std::vector<float>> logits;  // after each prompt; empty where they stay on a GPU
};

struct Reference {
  Tokens prompt, greedy;
  double min_top2_gap = 1.0;
};

// Of several lengths; the last two share their beginning.
std::vector<Tokens> test_prompts(int64_t vocab_size, int64_t room) {
  std::vector<Tokens> prompts;
  uint64_t next = 0;
  for (const int64_t length : {int64_t{1}, int64_t{9}, int64_t{40}, int64_t{150}, int64_t{150}}) {
    Tokens prompt;
    for (int64_t i = 0; i < std::min(length, room); ++i) {
      prompt.push_back(
          static_cast<int32_t>(random_bits(7, next++) % static_cast<uint64_t>(vocab_size)));
    }
    prompts.push_back(std::move(prompt));
  }
  const Tokens& first = prompts[prompts.size() - 2];
  std::copy_n(first.begin(), first.size() / 2, prompts.back().begin());
  return prompts;
}

std::vector<Tokens> generate(Scheduler& scheduler, const std::vector<Tokens>& prompts,
                             int64_t num_tokens, bool one_by_one) {
  std::vector<Tokens> tokens(prompts.size());
  std::vector<Reply> replies;
  const auto run = [&] {
    while (scheduler.step(replies)) {
    }
    for (const Reply& reply : replies) {
      if (reply.reason == FinishReason::kError) throw Error(reply.error_kind, reply.error);
      if (reply.token >= 0) tokens[static_cast<size_t>(reply.uid)].push_back(reply.token);
    }
    replies.clear();
  };
  for (size_t i = 0; i < prompts.size(); ++i) {
    GenerateRequest request;
    request.uid = static_cast<int64_t>(i);
    request.input_ids = prompts[i];
    request.sampling_params.max_tokens = num_tokens;
    scheduler.submit(std::move(request), replies);
    if (one_by_one) run();
  }
  run();
  scheduler.check_integrity();
  return tokens;
}

// The row of logits after `prompt`, computed in the engine's chunks at the end of its pool.
std::vector<float> logits_after(Engine& engine, const Tokens& prompt) {
  const auto n = static_cast<int64_t>(prompt.size());
  Req req;
  req.uid = 0;
  req.input_ids = prompt;
  req.prompt_len = req.prefill_len = n;
  req.table_idx = 0;
  req.max_device_len = n + 1;
  int32_t* locations = engine.page_table().select(0).data<int32_t>();
  for (int64_t i = 0; i < n; ++i) locations[i] = static_cast<int32_t>(i);
  std::copy(prompt.begin(), prompt.end(), engine.token_pool().select(0).data<int32_t>());
  Step step;
  for (int64_t begin = 0; begin < n; begin = req.cached_len) {
    req.cached_len = begin;
    req.device_len = std::min(begin + engine.limits().max_prefill_tokens, n);
    step.batch.reqs = {&req};
    step.batch.phase = Phase::kPrefill;
    engine.prepare(step);
    engine.launch(step);
    engine.wait(step);
  }
  if (step.logits.empty()) return {};
  const auto row = step.logits.select(step.samples.front().logit_row).values<float>();
  return {row.begin(), row.end()};
}

std::vector<Variant> variants() {
  const auto engine = [](std::string name, std::function<void(EngineConfig&)> change) {
    return Variant{.name = std::move(name), .engine = std::move(change), .scheduler = {}};
  };
  const auto scheduler = [](std::string name, std::function<void(SchedulerConfig&)> change) {
    return Variant{.name = std::move(name), .engine = {}, .scheduler = std::move(change)};
  };
  std::vector<Variant> all = {
      {.name = "batch company: all prompts together", .engine = {}, .scheduler = {}},
      {.name = "warm prefix cache", .engine = {}, .scheduler = {}, .warm = true},
      scheduler("cache type naive", [](SchedulerConfig& c) { c.cache_type = "naive"; }),
      scheduler("overlap off", [](SchedulerConfig& c) { c.overlap = false; }),
      scheduler("schedule prefill-first",
                [](SchedulerConfig& c) { c.schedule = SchedulePolicy::kPrefillFirst; }),
      scheduler("admission reserve",
                [](SchedulerConfig& c) { c.admission = AdmissionPolicy::kReserve; }),
      engine("page size 4", [](EngineConfig& c) { c.page_size = 4; }),
      engine("page size 16", [](EngineConfig& c) { c.page_size = 16; }),
      engine("chunks of 7 tokens", [](EngineConfig& c) { c.max_prefill_tokens = 7; }),
      engine("chunks of 64 tokens", [](EngineConfig& c) { c.max_prefill_tokens = 64; }),
      engine("one thread", [](EngineConfig& c) { c.threads = 1; }),
      engine("graphs, padded batches", [](EngineConfig& c) { c.graph_max_bs = 8; })};
  all[6].warm = all[7].warm = true;
  return all;
}

// Runs variants; the engine is kept for as long as the variants need the same one.
class Verifier {
 public:
  explicit Verifier(const VerifyOptions& options)
      : options_(options),
        path_(resolve_with_progress(options.llm.model, options.llm.model_source)) {}

  void run() {
    check_reference_file();
    Engine& engine = open({});
    fmt::print("{}\n\n", engine.description());
    const auto limits = engine.limits();
    const int64_t room = std::min(limits.max_seq_len, limits.num_pages * limits.page_size);
    if (room <= options_.num_tokens + 1) {
      throw_error(ErrorKind::kInvalidArgument,
                  "--tokens {} leave no room for a prompt in a context of {}", options_.num_tokens,
                  room);
    }
    prompts_ = test_prompts(limits.vocab_size, room - options_.num_tokens);
    baseline_ = compute({.name = "baseline",
                         .engine = {},
                         .scheduler =
                             [](SchedulerConfig& c) {
                               c.cache_type = "naive";
                               c.overlap = false;
                             },
                         .one_by_one = true});
    fmt::print("{:<40} {:>8} {:>14}\n", "changed against the baseline", "tokens", "logits' bits");
    for (const Variant& variant : variants()) compare(variant, compute(variant));
    if (!references_.empty()) check_parity();
    fmt::print("\n{} of {} checks passed\n", num_checks_ - num_failed_, num_checks_);
    if (num_failed_ > 0) {
      throw_error(ErrorKind::kInternal,
                  "{} of {} checks failed: this model on this machine does not keep the contract; "
                  "please report the table",
                  num_failed_, num_checks_);
    }
  }

 private:
  Engine& open(const std::function<void(EngineConfig&)>& change) {
    if (engine_ && !change && !is_changed_) return *engine_;
    engine_.reset();  // first: two models may not fit
    EngineConfig config = engine_config(options_.llm, path_);
    if (config.max_running_requests > 8) config.max_running_requests = 8;
    if (change) change(config);
    engine_ = std::make_unique<Engine>(config);
    is_changed_ = static_cast<bool>(change);
    return *engine_;
  }

  Results compute(const Variant& variant) {
    Engine& engine = open(variant.engine);
    SchedulerConfig config = scheduler_config(options_.llm);
    if (variant.scheduler) variant.scheduler(config);
    Results results;
    {
      Scheduler scheduler(engine, config);
      results.tokens = generate(scheduler, prompts_, options_.num_tokens, variant.one_by_one);
      if (variant.warm) {
        results.tokens = generate(scheduler, prompts_, options_.num_tokens, variant.one_by_one);
      }
    }
    // What a scheduler decides does not reach the logits of a single prompt.
    if (variant.scheduler && !variant.one_by_one) return results;
    for (const Tokens& prompt : prompts_) results.logits.push_back(logits_after(engine, prompt));
    return results;
  }

  void compare(const Variant& variant, const Results& results) {
    const bool same_tokens = results.tokens == baseline_.tokens;
    std::string bits = "-";
    bool same_bits = true;
    if (!results.logits.empty() && !results.logits.front().empty()) {
      for (size_t i = 0; i < results.logits.size(); ++i) {
        const auto& a = results.logits[i];
        const auto& b = baseline_.logits[i];
        same_bits = same_bits && a.size() == b.size() &&
                    std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
      }
      bits = same_bits ? "equal" : "DIFFERENT";
    }
    record(variant.name, same_tokens, bits, same_tokens && same_bits);
  }

  void check_reference_file() {
    if (options_.reference.empty()) return;
    const Json document = read_json_file(options_.reference);
    try {
      for (const Json& entry : document.at("cases")) {
        Reference reference;
        reference.prompt =
            entry.at(entry.contains("prompt_ids") ? "prompt_ids" : "prompt").get<Tokens>();
        reference.greedy = entry.at("greedy").get<Tokens>();
        reference.min_top2_gap = entry.value("min_top2_gap", 1.0);
        if (reference.prompt.empty() || reference.greedy.empty()) {
          throw_error(ErrorKind::kBadFile, "{}: a case without tokens", options_.reference);
        }
        references_.push_back(std::move(reference));
      }
    } catch (const Json::exception& error) {
      throw_error(ErrorKind::kBadFile,
                  "{}: expected {{\"cases\": [{{\"prompt\": [ids], \"greedy\": [ids]}}, …]}}: {}",
                  options_.reference, error.what());
    }
  }

  // Where the two best tokens are closer than this, two correct programs may differ.
  static constexpr double kLeastGap = 1e-4;

  void check_parity() {
    Engine& engine = open({});
    int64_t num_equal = 0, num_void = 0;
    for (const Reference& reference : references_) {
      Scheduler scheduler(engine, scheduler_config(options_.llm));
      const auto count = static_cast<int64_t>(reference.greedy.size());
      const Tokens tokens = generate(scheduler, {reference.prompt}, count, false).front();
      if (tokens == reference.greedy) {
        ++num_equal;
      } else if (reference.min_top2_gap < kLeastGap) {
        ++num_void;
      }
    }
    const auto total = static_cast<int64_t>(references_.size());
    record(fmt::format("reference: {} of {} equal, {} void", num_equal, total, num_void),
           num_equal + num_void == total, "-", num_equal + num_void == total);
  }

  void record(const std::string& name, bool same_tokens, const std::string& bits, bool passed) {
    fmt::print("{:<40} {:>8} {:>14}\n", name, same_tokens ? "equal" : "DIFFERENT", bits);
    std::fflush(stdout);
    ++num_checks_;
    num_failed_ += !passed;
  }

  VerifyOptions options_;
  std::string path_;
  std::unique_ptr<Engine> engine_;
  bool is_changed_ = false;
  std::vector<Tokens> prompts_;
  std::vector<Reference> references_;
  Results baseline_;
  int num_checks_ = 0;
  int num_failed_ = 0;
};

}  // namespace

void add_verify_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "verify", "Check that tokens depend on nothing but the request, on your model and machine");
  auto options = std::make_shared<VerifyOptions>();
  add_model_options(*command, options->llm);
  add_engine_options(*command, options->llm);
  command->add_option("--tokens", options->num_tokens, "Tokens generated for each prompt")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command->add_option("--reference", options->reference,
                      "JSON file of {\"cases\": [{\"prompt\": [ids], \"greedy\": [ids]}]} that "
                      "greedy answers must equal");
  command->callback([options] { Verifier(*options).run(); });
}

}  // namespace minisgl
