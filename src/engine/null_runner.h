// A runner without a model: prepares steps as the engine does and computes nothing, so that what is
// measured or watched above it is the scheduler alone.
#pragma once

#include <cstdint>

#include "engine/step_runner.h"

namespace minisgl {

// Every request draws token 0 for ever. Steps are done as soon as they are launched. One thread.
class NullRunner final : public StepRunner {
 public:
  explicit NullRunner(const Limits& limits);

  Limits limits() const override { return limits_; }
  TensorView page_table() const override { return page_table_; }
  TensorView token_pool() const override { return token_pool_; }
  void prepare(Step& step) override;
  void launch(Step& step) override;
  void wait(Step&) override {}

 private:
  Limits limits_;
  Tensor page_table_, token_pool_;
};

}  // namespace minisgl
