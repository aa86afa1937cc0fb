#include "llm/options.h"

#include "utils/error.h"

namespace minisgl {
namespace {

template <class T>
struct Choice {
  const char* name;
  T value;
};

template <class T>
T choose(const char* flag, const std::string& name, const Choice<T> (&choices)[2]) {
  for (const Choice<T>& choice : choices) {
    if (name == choice.name) return choice.value;
  }
  throw_error(ErrorKind::kInvalidArgument, "{} '{}': expected {} or {}", flag, name,
              choices[0].name, choices[1].name);
}

}  // namespace

EngineConfig engine_config(const LLMOptions& options, const std::string& model_path) {
  EngineConfig config;
  config.model_path = model_path;
  config.dummy_weight = options.dummy_weight;
  config.dtype = options.dtype;
  config.device = options.device;
  config.attention_backend = options.attention_backend;
  config.isa = options.isa;
  config.threads = options.threads;
  config.max_running_requests = options.max_running_requests;
  config.max_seq_len = options.max_seq_len;
  config.max_prefill_tokens = options.max_prefill_length;
  config.page_size = options.page_size;
  config.num_pages = options.num_pages;
  config.memory_ratio = options.memory_ratio;
  config.graph_max_bs = options.cuda_graph_max_bs;
  config.seed = options.seed;
  return config;
}

SchedulerConfig scheduler_config(const LLMOptions& options) {
  SchedulerConfig config;
  config.schedule = choose<SchedulePolicy>(
      "--schedule", options.schedule,
      {{"mixed", SchedulePolicy::kMixed}, {"prefill-first", SchedulePolicy::kPrefillFirst}});
  config.admission = choose<AdmissionPolicy>(
      "--admission", options.admission,
      {{"optimistic", AdmissionPolicy::kOptimistic}, {"reserve", AdmissionPolicy::kReserve}});
  config.cache_type = options.cache_type;
  config.overlap = !options.disable_overlap;
  config.max_token_gap_ms = options.max_token_gap_ms;
  config.trace_file = options.trace_file;
  return config;
}

}  // namespace minisgl
