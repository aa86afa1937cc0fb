// A runner without a model, whose "KV pool" notices every mistake of a scheduler.
#pragma once

#include <cstdint>
#include <deque>
#include <random>
#include <set>
#include <span>
#include <vector>

#include "engine/step_runner.h"

namespace minisgl::testing {

// The state of a sequence after a token is a hash of the state before it and the token; the state
// of every position is kept at its location in the pool, and the next token is a function of the
// last state. So a page that was freed too early, a row that was reused, a copy that was forgotten
// or a wrong order of steps gives other tokens than the request alone would get.
class MockRunner final : public StepRunner {
 public:
  // When a launched step really runs: at once, or as late as its wait(). Random per step.
  MockRunner(const Limits& limits, uint64_t seed);

  Limits limits() const override { return limits_; }
  TensorView page_table() const override { return page_table_; }
  TensorView token_pool() const override { return token_pool_; }
  void prepare(Step& step) override;
  void launch(Step& step) override;
  void wait(Step& step) override;

  int64_t num_steps() const { return num_steps_; }
  int64_t computed_tokens() const { return computed_tokens_; }
  // The largest number of tokens in one step, and of steps with prefill and decode rows together.
  int64_t largest_step() const { return largest_step_; }
  int64_t num_mixed_steps() const { return num_mixed_steps_; }
  // The next step that is prepared will throw.
  void fail_next_step() { fail_next_ = true; }
  // Whether a step that mentioned this request threw.
  bool has_failed(int64_t uid) const { return failed_.contains(uid); }

  // What a request alone generates.
  static std::vector<int32_t> tokens_alone(std::span<const int32_t> prompt, int64_t max_tokens,
                                           std::span<const int32_t> stop_ids, int64_t vocab_size);
  // What it reports of all but the first of these tokens.
  static std::vector<float> logprobs_alone(std::span<const int32_t> tokens);

 private:
  // What a prepared step knows of one request.
  struct Row {
    int32_t table_idx;
    int64_t begin, end;  // positions computed
    bool samples;
    std::vector<int32_t> locations;  // [0, end), as the page table was when it was prepared
  };
  struct Prepared {
    Step* step = nullptr;
    std::vector<Row> rows;
    bool fails = false;
  };
  void run_next();
  void score(const Prepared& prepared);

  Limits limits_;
  Tensor page_table_, token_pool_;
  std::vector<uint64_t> pool_;  // state by location
  Prepared prepared_;
  std::deque<Prepared> launched_;
  std::mt19937_64 random_;
  int64_t num_steps_ = 0;
  int64_t computed_tokens_ = 0;
  int64_t largest_step_ = 0;
  int64_t num_mixed_steps_ = 0;
  bool fail_next_ = false;
  std::set<int64_t> failed_;
};

}  // namespace minisgl::testing
