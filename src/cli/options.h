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
// --temperature, --top-k, …
void add_sampling_options(CLI::App& app, SamplingFlags& flags);
// --config FILE: TOML (key = value) or a JSON object; flags and the environment win over it.
void add_config_file(CLI::App& app);

// True if any option of the group "Sampling" was given.
bool sampling_was_given(const CLI::App& app);

}  // namespace minisgl
