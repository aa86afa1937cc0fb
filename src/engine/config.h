// How an engine is set up. Plain data with defaults; Engine resolves "auto" and checks the limits.
#pragma once

#include <cstdint>
#include <string>

namespace minisgl {

struct EngineConfig {
  std::string model_path{};                // a Hugging Face folder or a .gguf file, on this machine
  bool dummy_weight = false;               // random weights from the config alone
  std::string dtype = "auto";              // auto | float32 | bfloat16 | float16
  std::string device = "auto";             // auto | cpu | cuda[:N]
  std::string attention_backend = "auto";  // a name or "prefill,decode"
  std::string isa = "auto";                // instruction set of the CPU's kernels
  int threads = 0;                         // CPU threads; 0: every core that the process may use
  int64_t max_running_requests = 256;      // rows of the page table
  int64_t max_seq_len = 0;                 // tokens, prompt and answer; 0: the model's context
  int64_t max_prefill_tokens = 8192;       // new tokens in one step
  int64_t page_size = 1;                   // tokens
  int64_t num_pages = 0;                   // 0: what fits, see memory_plan.h
  double memory_ratio = 0.9;               // share of free memory for weights and KV
  int64_t graph_max_bs = 0;  // decode batches up to this are padded and replayed; 0: none
  uint64_t seed = 42;        // of requests that bring none
};

}  // namespace minisgl
