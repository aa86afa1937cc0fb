#include "llm/recording.h"

#include "minisgl/version.h"
#include "utils/error.h"
#include "utils/system.h"

namespace minisgl {

Json recording_setup(const LLMOptions& options, const EngineConfig& resolved) {
  return {{"version", kVersion},
          {"machine", cpu_model_name()},
          {"model", resolved.model_path},
          {"dummy_weight", resolved.dummy_weight},
          {"dtype", resolved.dtype},
          {"device", resolved.device},
          {"attention_backend", resolved.attention_backend},
          {"isa", resolved.isa},
          {"threads", resolved.threads},
          {"max_running_requests", resolved.max_running_requests},
          {"max_seq_len", resolved.max_seq_len},
          {"max_prefill_length", resolved.max_prefill_tokens},
          {"page_size", resolved.page_size},
          {"num_pages", resolved.num_pages},
          {"memory_ratio", resolved.memory_ratio},
          {"cuda_graph_max_bs", resolved.graph_max_bs},
          {"seed", resolved.seed},
          {"cache_type", options.cache_type},
          {"schedule", options.schedule},
          {"admission", options.admission},
          {"disable_overlap", options.disable_overlap}};
}

LLMOptions options_from_setup(const Json& setup) {
  LLMOptions options;
  try {
    setup.at("model").get_to(options.model);
    setup.at("dummy_weight").get_to(options.dummy_weight);
    setup.at("dtype").get_to(options.dtype);
    setup.at("device").get_to(options.device);
    setup.at("attention_backend").get_to(options.attention_backend);
    setup.at("isa").get_to(options.isa);
    setup.at("threads").get_to(options.threads);
    setup.at("max_running_requests").get_to(options.max_running_requests);
    setup.at("max_seq_len").get_to(options.max_seq_len);
    setup.at("max_prefill_length").get_to(options.max_prefill_length);
    setup.at("page_size").get_to(options.page_size);
    setup.at("num_pages").get_to(options.num_pages);
    setup.at("memory_ratio").get_to(options.memory_ratio);
    setup.at("cuda_graph_max_bs").get_to(options.cuda_graph_max_bs);
    setup.at("seed").get_to(options.seed);
    setup.at("cache_type").get_to(options.cache_type);
    setup.at("schedule").get_to(options.schedule);
    setup.at("admission").get_to(options.admission);
    setup.at("disable_overlap").get_to(options.disable_overlap);
  } catch (const Json::exception& error) {
    throw_error(ErrorKind::kBadFile, "recording, line 1: the setup cannot be read: {}",
                error.what());
  }
  return options;
}

}  // namespace minisgl
