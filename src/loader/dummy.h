// Random weights from a config alone (--dummy-weight): for benchmarks and tests of shapes.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "core/model_config.h"
#include "loader/weights.h"

namespace minisgl {

// Any tensor that is asked for exists: norms are ones, everything else is normally distributed with
// deviation 0.02. A tensor's values depend on its name, its shape and `seed` only. They are made
// when asked for and dropped on release().
class DummyCheckpoint final : public Checkpoint {
 public:
  // dtype: of the weights; float32, float16 or bfloat16.
  DummyCheckpoint(const ModelConfig& config, DType dtype, uint64_t seed = 0);

  RawMatrix get(const std::string& name, int64_t rows, int64_t cols) override;
  // Whether the model of the config has this tensor, as far as that is optional (biases, head).
  bool has(const std::string& name) const override;
  void release(const RawMatrix& matrix) override;
  void check_all_used(const std::vector<std::string>&) const override {}  // nothing is surplus
  // Of a decoder with this config.
  int64_t total_bytes() const override;

 private:
  ModelConfig config_;
  DType dtype_;
  uint64_t seed_;
  std::unordered_map<std::string, std::vector<std::byte>> tensors_;
};

}  // namespace minisgl
