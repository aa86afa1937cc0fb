#include "scheduler/mock_runner.h"

#include <algorithm>

#include "engine/step_outputs.h"
#include "utils/math.h"
#include "utils/random.h"

namespace minisgl::testing {
namespace {

constexpr uint64_t kStart = 0x9E3779B97F4A7C15;

uint64_t next_state(uint64_t state, int32_t token) {
  return random_bits(state, static_cast<uint64_t>(token));
}
int32_t token_of(uint64_t state, int64_t vocab_size) {
  return static_cast<int32_t>(state % static_cast<uint64_t>(vocab_size));
}

// A number that tells states and tokens apart.
float logprob_of(uint64_t state, int32_t token) {
  return -static_cast<float>(random_bits(state, static_cast<uint64_t>(token), 1) % 4096);
}

}  // namespace

MockRunner::MockRunner(const Limits& limits, uint64_t seed) : limits_(limits), random_(seed) {
  const int64_t shape[] = {limits.max_running_requests + 1,
                           align_up(limits.max_seq_len, 64 * limits.page_size)};
  page_table_ = Tensor::zeros(DType::kInt32, shape);
  token_pool_ = Tensor::zeros(DType::kInt32, shape);
  pool_.resize(static_cast<size_t>((limits.num_pages + 1) * limits.page_size));
}

void MockRunner::prepare(Step& step) {
  prepared_ = {.step = &step, .rows = {}, .fails = std::exchange(fail_next_, false)};
  int64_t tokens = 0;
  bool has_decode = false, has_prefill = false;
  std::vector<int32_t> cu_seqlens_q = {0};
  for (const Req* req : step.batch.reqs) {
    cu_seqlens_q.push_back(cu_seqlens_q.back() + static_cast<int32_t>(req->extend_len()));
  }
  step.batch.padded_reqs = step.batch.reqs;
  describe_outputs(step, cu_seqlens_q, 0);
  for (Req* req : step.batch.reqs) {
    const int32_t* row = page_table_.view().select(req->table_idx).data<int32_t>();
    prepared_.rows.push_back({.table_idx = req->table_idx,
                              .begin = req->cached_len,
                              .end = req->device_len,
                              .samples = req->device_len >= req->prefill_len,
                              .locations = {row, row + req->device_len}});
    if (prepared_.fails) failed_.insert(req->uid);
    tokens += req->extend_len();
    (req->extend_len() == 1 ? has_decode : has_prefill) = true;
    req->complete_one();
  }
  ++num_steps_;
  computed_tokens_ += tokens;
  largest_step_ = std::max(largest_step_, tokens);
  num_mixed_steps_ += has_decode && has_prefill;
}

void MockRunner::launch(Step& step) {
  MINISGL_CHECK(prepared_.step == &step && launched_.size() < 2);
  launched_.push_back(std::move(prepared_));
  while (!launched_.empty() && random_() % 2 == 0) run_next();
}

void MockRunner::wait(Step& step) {
  const auto waits = [&step](const Prepared& p) { return p.step == &step; };
  while (std::any_of(launched_.begin(), launched_.end(), waits)) run_next();
  if (step.error) std::rethrow_exception(std::exchange(step.error, nullptr));
}

void MockRunner::run_next() {
  const Prepared prepared = std::move(launched_.front());
  launched_.pop_front();
  Step& step = *prepared.step;
  step.next_tokens.assign(prepared.rows.size(), -1);
  if (prepared.fails) {
    step.error = std::make_exception_ptr(Error(ErrorKind::kResource, "the step failed"));
    return;
  }
  for (size_t i = 0; i < prepared.rows.size(); ++i) {
    const Row& row = prepared.rows[i];
    int32_t* tokens = token_pool_.view().select(row.table_idx).data<int32_t>();
    for (int64_t at = row.begin; at < row.end; ++at) {
      const auto here = static_cast<size_t>(at);
      const uint64_t before =
          at == 0 ? kStart : pool_[static_cast<size_t>(row.locations[here - 1])];
      pool_[static_cast<size_t>(row.locations[here])] = next_state(before, tokens[at]);
    }
    if (!row.samples) continue;
    const uint64_t state = pool_[static_cast<size_t>(row.locations.back())];
    step.next_tokens[i] = tokens[row.end] = token_of(state, limits_.vocab_size);
  }
  score(prepared);
}

void MockRunner::score(const Prepared& prepared) {
  Step& step = *prepared.step;
  for (const LogprobRow& scored : step.logprob_rows) {
    const auto position = static_cast<size_t>(scored.position);
    const Row& row = prepared.rows[static_cast<size_t>(scored.request)];
    const uint64_t state = pool_[static_cast<size_t>(row.locations[position - 1])];
    const int32_t token = token_pool_.view().select(row.table_idx).data<int32_t>()[position];
    step.logprobs[scored.first] = {.token = token, .logprob = logprob_of(state, token)};
  }
}

std::vector<float> MockRunner::logprobs_alone(std::span<const int32_t> tokens) {
  uint64_t state = kStart;
  std::vector<float> logprobs;
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    state = next_state(state, tokens[i]);
    logprobs.push_back(logprob_of(state, tokens[i + 1]));
  }
  return logprobs;
}

std::vector<int32_t> MockRunner::tokens_alone(std::span<const int32_t> prompt, int64_t max_tokens,
                                              std::span<const int32_t> stop_ids,
                                              int64_t vocab_size) {
  uint64_t state = kStart;
  for (const int32_t token : prompt) state = next_state(state, token);
  std::vector<int32_t> tokens;
  while (static_cast<int64_t>(tokens.size()) < max_tokens) {
    tokens.push_back(token_of(state, vocab_size));
    if (std::find(stop_ids.begin(), stop_ids.end(), tokens.back()) != stop_ids.end()) break;
    state = next_state(state, tokens.back());
  }
  return tokens;
}

}  // namespace minisgl::testing
