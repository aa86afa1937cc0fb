// A reference model: its files, prompts, greedy tokens and logits as Hugging Face gives them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "loader/safetensors.h"
#include "scheduler/scheduler.h"

namespace minisgl::testing {

struct GoldenCase {
  std::vector<int32_t> prompt;
  std::vector<int32_t> greedy;
  double min_top2_gap = 0.0;
  // Void where the two best tokens are closer than any two correct programs.
  bool is_void() const { return min_top2_gap < 1e-4; }
};

class GoldenModel {
 public:
  // dir: with expected.json and expected.safetensors; model: what the engine opens.
  GoldenModel(const std::string& dir, std::string model);

  const std::string& model() const { return model_; }
  const std::vector<GoldenCase>& cases() const { return cases_; }
  // [rows, vocab] of case i, row r for position `positions[r]`.
  struct Logits {
    std::vector<int64_t> positions;
    TensorView values;
  };
  Logits logits(size_t i) const;

 private:
  std::string model_;
  std::vector<GoldenCase> cases_;
  SafetensorsFile expected_;
};

// Every reference model of the architectures that we have, "models/qwen3",
// "gguf/models/llama-q8_0": the full set where it is present, the committed selection otherwise.
std::vector<std::string> golden_names();
GoldenModel open_golden(const std::string& name);

// Greedy tokens of all prompts at once through a scheduler; the longest stream of `num_tokens`.
std::vector<std::vector<int32_t>> generate_greedy(Engine& engine, const SchedulerConfig& config,
                                                  const std::vector<std::vector<int32_t>>& prompts,
                                                  int64_t num_tokens);

// Logits [tokens, vocab] of every position, computed in chunks of at most `chunk` tokens.
std::vector<float> logits_of(Engine& engine, const std::vector<int32_t>& tokens, int64_t chunk);

}  // namespace minisgl::testing
