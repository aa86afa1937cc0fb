// A loaded model with its KV pool: turns a prepared step into next tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attention/backend.h"
#include "attention/registry.h"
#include "core/context.h"
#include "core/model_config.h"
#include "engine/compute_thread.h"
#include "engine/config.h"
#include "engine/device.h"
#include "engine/device_inputs.h"
#include "engine/graph_runner.h"
#include "engine/memory_plan.h"
#include "engine/sampler.h"
#include "engine/step_runner.h"
#include "kernel/kernels.h"
#include "kvcache/kv_pool.h"
#include "models/model.h"
#include "utils/thread_pool.h"

namespace minisgl {

// Steps run one after another on a compute thread of the engine's own. Everything is allocated in
// the constructor or on first use of a size; a steady-state decode step allocates nothing.
class Engine final : public StepRunner {
 public:
  // Loads the model. Errors: whatever the config, the files or the machine do not allow.
  explicit Engine(const EngineConfig& config, const LoadProgress& progress = {});
  ~Engine() override;

  const EngineConfig& config() const { return config_; }  // resolved: no "auto" left
  const ModelConfig& model_config() const { return model_config_; }
  const GenerationConfig& generation_config() const { return generation_config_; }
  const std::string& tokenizer_path() const { return tokenizer_path_; }
  const MemoryPlan& memory_plan() const { return memory_plan_; }
  int64_t weight_bytes() const { return weight_bytes_; }
  std::string description() const;  // device, threads, dtype, attention: one line

  Limits limits() const override;
  TensorView page_table() const override { return page_table_; }
  TensorView token_pool() const override { return token_pool_; }
  void prepare(Step& step) override;
  void launch(Step& step) override { compute_->launch(step); }
  void wait(Step& step) override { compute_->wait(step); }

 private:
  void resolve_limits();
  void load_model(const LoadProgress& progress);
  void allocate_tables();
  void make_dummy();
  void forward(Step& step);
  TensorView run_model(Batch& batch);
  void take_most_likely(Step& step, TensorView logits);
  void sample(Step& step);
  void score(Step& step);
  void put_token(Step& step, const SampleRow& row, int32_t token);

  EngineConfig config_;
  ModelConfig model_config_;
  GenerationConfig generation_config_;
  std::string tokenizer_path_;
  int64_t weight_bytes_ = 0;
  DType weight_dtype_ = DType::kFloat32;
  std::unique_ptr<ThreadPool> threads_;
  OpenedDevice device_;
  Kernels* kernels_ = nullptr;  // of device_
  std::unique_ptr<Model> model_;
  MemoryPlan memory_plan_;
  std::unique_ptr<KVPool> pool_;
  std::unique_ptr<AttentionBackend> attention_;
  Tensor page_table_, token_pool_;
  Req dummy_;
  Tensor arena_memory_;
  Arena arena_;
  int64_t max_logit_rows_ = 0;  // that the arena has room for
  std::unique_ptr<DeviceInputs> inputs_;
  std::unique_ptr<DeviceOutputs> outputs_;
  std::unique_ptr<GraphRunner> graphs_;
  Sampler sampler_{1};
  std::unique_ptr<ComputeThread> compute_;  // last: ends before what it uses
};

}  // namespace minisgl
