// The C++ API: a model in this process.
//
//   minisgl::LLM llm({.model = "Qwen/Qwen3-0.6B"});
//   auto outputs = llm.generate({"The capital of France is"}, {.max_tokens = 16});
//   std::cout << outputs[0].text;
//
// Errors are minisgl::Error with a message for the person who can act on it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "minisgl/error.h"
#include "minisgl/logprobs.h"
#include "minisgl/sampling_params.h"

namespace minisgl {

// How a model is loaded and run. The command line's flags have the same names and meanings; see
// `minisgl run --help`.
struct LLMOptions {
  std::string model;  // a folder, a .gguf file, or a hub name: ORG/REPO[:QUANTISATION][@REVISION]
  std::string model_source = "huggingface";  // or "modelscope"
  bool dummy_weight = false;                 // random weights from the config alone
  std::string tokenizer;                     // folder or file; empty: the model's own
  std::string chat_template;                 // file; empty: the model's own
  std::string dtype = "auto";                // auto | float32 | bfloat16 | float16
  std::string device = "auto";               // auto | cpu | cuda | cuda:N
  std::string attention_backend = "auto";    // a name or "prefill,decode"
  std::string isa = "auto";                  // instruction set of the CPU's kernels
  int threads = 0;                           // 0: every core that the process may use
  int64_t max_running_requests = 256;
  int64_t max_seq_len = 0;               // tokens, prompt and answer; 0: the model's context
  int64_t max_prefill_length = 0;        // new tokens in one step; 0: 512 on the CPU, 8192 on a GPU
  int64_t page_size = 1;                 // tokens
  int64_t num_pages = 0;                 // 0: what fits
  double memory_ratio = 0.9;             // share of free memory for weights and KV
  int64_t cuda_graph_max_bs = 0;         // decode batches up to this are padded and replayed
  std::string cache_type = "radix";      // or "naive"
  std::string schedule = "mixed";        // or "prefill-first"
  std::string admission = "optimistic";  // or "reserve"
  bool disable_overlap = false;
  uint64_t seed = 42;  // of requests that bring none
  // Longest time between two tokens of a running answer, kept by cutting prompts that are computed
  // beside it into chunks whose steps, as measured, take less. 0: none.
  int64_t max_token_gap_ms = 0;
  std::string record_file{};  // requests and decisions, for `minisgl replay`; empty: none
  std::string trace_file{};   // written for chrome://tracing or ui.perfetto.dev; empty: none
};

struct ChatMessage {
  std::string role;  // "system", "user", "assistant", …
  std::string content;
};

// Text, or token ids.
using Prompt = std::variant<std::string, std::vector<int32_t>>;

struct Output {
  std::string text;                // without the stop string or the end-of-text token
  std::vector<int32_t> token_ids;  // what was generated, an end-of-text token included
  std::string finish_reason;       // "stop", "length", "abort"
  // Which rule ended it: "end_of_text", "stop_token", "stop_string", "max_tokens", "context_full",
  // "aborted".
  std::string finish_rule;
  // What the prompt cost. Of several samples of a prompt the first alone counts it.
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // of the prompt, found in the prefix cache
  // Why not more, unless a stop string or the caller ended it: so many tokens agreed with the
  // cache, then came "complete", "page border", "differs", "not cached", "cache off" or "prompt
  // logprobs" (which need every position computed).
  int64_t prefix_agreeing_tokens = 0;
  std::string prefix_stop;
  // Where SamplingParams asks: one for each of token_ids …
  std::vector<PositionLogprobs> logprobs{};
  double cumulative_logprob = 0.0;  // … and the sum over them;
  // one for each token of the prompt but the first, which has none. Of several samples the first
  // alone has them.
  std::vector<PositionLogprobs> prompt_logprobs{};
};

// A piece of an answer as it comes: whole UTF-8 characters, never taken back.
struct Piece {
  size_t index = 0;       // of the output: prompt * n + sample where all prompts have the same n
  std::string_view text;  // may be empty while characters or a stop string are pending
  int32_t token = -1;
  bool finished = false;  // no more of this output comes
};

// How far loading is.
using LoadCallback = std::function<void(int64_t done, int64_t total)>;
// Called in the thread that called generate(); returning false ends that prompt's answer.
using PieceCallback = std::function<bool(const Piece&)>;

class LLM {
 public:
  explicit LLM(const LLMOptions& options, const LoadCallback& on_load = {});
  ~LLM();
  LLM(LLM&&) noexcept;
  LLM& operator=(LLM&&) noexcept;

  // All prompts at once, batched; outputs in their order, n of them for each prompt. The parameters
  // are all prompts', or one element a prompt. Thread-safe: calls take turns.
  // Errors: kInvalidArgument when a prompt or the parameters cannot be served, with the numbers.
  std::vector<Output> generate(const std::vector<Prompt>& prompts, const SamplingParams& params,
                               const PieceCallback& on_piece = {});
  std::vector<Output> generate(const std::vector<Prompt>& prompts,
                               std::span<const SamplingParams> params,
                               const PieceCallback& on_piece = {});
  // One answer to a conversation, through the model's chat template; n must be 1.
  Output chat(const std::vector<ChatMessage>& messages, const SamplingParams& params,
              const PieceCallback& on_piece = {});

  // What the model's makers recommend (generation_config.json), where they say something.
  SamplingParams recommended_sampling() const;
  // The prompt that chat() would use.
  std::string render_chat(const std::vector<ChatMessage>& messages) const;
  bool has_chat_template() const;
  std::vector<int32_t> encode(std::string_view text) const;
  // The token ids of the prompt that chat() would use.
  std::vector<int32_t> encode_chat(const std::vector<ChatMessage>& messages) const;
  std::string decode(const std::vector<int32_t>& ids) const;
  // One line on the model and the device, one on memory.
  std::string description() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace minisgl
