// The command line's one table of options: each has a flag (with upstream's and the field's other
// spellings), an environment variable MINISGL_… and a key of the same name in a config file.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "minisgl/llm.h"

namespace minisgl {

struct SamplingFlags {
  SamplingParams params;
  bool use_recommended = true;  // the model's generation_config unless a sampling flag is given
};

// --model and where it comes from.
void add_model_options(CLI::App& app, LLMOptions& options);
// Everything about loading and scheduling.
void add_engine_options(CLI::App& app, LLMOptions& options);
// --temperature, --top-k, … : of one answer
void add_sampling_options(CLI::App& app, SamplingFlags& flags);
// --samples, --logprobs, --prompt-logprobs: how many answers, and what is reported of them
void add_report_options(CLI::App& app, SamplingParams& params);
// What nobody asked for otherwise on the command line: the makers' recommendation.
void take_recommended(SamplingParams& params, const SamplingParams& recommended);
// --config FILE, for all commands: TOML (key = value) or a JSON object. Flags win over it, and it
// wins over the environment. An unknown key is an error.
void add_config_file(CLI::App& root);
// The program's arguments as CLI::App::parse() wants them, last first. The config file is read
// before the environment is, so MINISGL_CONFIG becomes an argument here.
std::vector<std::string> reversed_arguments(int argc, const char* const* argv);

// True if any option of the group "Sampling" was given.
bool sampling_was_given(const CLI::App& app);

}  // namespace minisgl
