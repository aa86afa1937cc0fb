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
#include "engine/config.h"
#include "engine/graph_runner.h"
#include "engine/memory_plan.h"
#include "engine/sampler.h"
#include "engine/step.h"
#include "kernel/kernels.h"
#include "kvcache/kv_pool.h"
#include "models/model.h"
#include "utils/thread_pool.h"

namespace minisgl {

// prepare() belongs to the scheduler's thread, forward() to the compute thread; they may run at the
// same time on different steps. Everything is allocated in the constructor or on first use of a
// size; a steady-state decode step allocates nothing.
class Engine {
 public:
  // Loads the model. Errors: whatever the config, the files or the machine do not allow.
  explicit Engine(const EngineConfig& config, const LoadProgress& progress = {});
  ~Engine();

  const EngineConfig& config() const { return config_; }  // resolved: no "auto" left
  const ModelConfig& model_config() const { return model_config_; }
  const GenerationConfig& generation_config() const { return generation_config_; }
  const std::string& tokenizer_path() const { return tokenizer_path_; }
  const MemoryPlan& memory_plan() const { return memory_plan_; }
  int64_t weight_bytes() const { return weight_bytes_; }
  std::string description() const;  // device, threads, dtype, attention: one line

  int64_t num_pages() const { return memory_plan_.num_pages; }
  int64_t max_seq_len() const { return config_.max_seq_len; }
  // [max_running_requests + 1, >= max_seq_len] int32 on the host: token locations, and the tokens
  // themselves. The last row is the dummy request's.
  TensorView page_table() const { return page_table_; }
  TensorView token_pool() const { return token_pool_; }

  // Describes what the scheduler batched (step.batch.reqs, .phase; pages are in the page table):
  // pads it, computes positions and locations, the attention metadata and the sampling rows, and
  // advances the requests (Req::complete_one): from here on the step is self-contained.
  void prepare(Step& step);
  // Runs a prepared step: fills next_tokens and writes them to the token pool.
  void forward(Step& step);

 private:
  AttentionTarget attention_target() const;
  void resolve_limits();
  void load_model(const LoadProgress& progress);
  void allocate_tables();
  void make_dummy();
  TensorView run_model(Batch& batch);
  void sample(Step& step);

  EngineConfig config_;
  ModelConfig model_config_;
  GenerationConfig generation_config_;
  std::string tokenizer_path_;
  int64_t weight_bytes_ = 0;
  DType weight_dtype_ = DType::kFloat32;
  std::unique_ptr<ThreadPool> threads_;
  std::unique_ptr<Kernels> kernels_;
  std::unique_ptr<Model> model_;
  MemoryPlan memory_plan_;
  std::unique_ptr<KVPool> pool_;
  std::unique_ptr<AttentionBackend> attention_;
  Tensor page_table_, token_pool_;
  Req dummy_;
  Tensor arena_memory_;
  Arena arena_;
  std::unique_ptr<GraphRunner> graphs_;
  Sampler sampler_{1};
};

}  // namespace minisgl
