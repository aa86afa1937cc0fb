// From the public options to the rooms' own configurations.
#pragma once

#include "engine/config.h"
#include "minisgl/llm.h"
#include "scheduler/config.h"

namespace minisgl {

// `model_path`: where the model's files are. Errors: kInvalidArgument for unknown names.
EngineConfig engine_config(const LLMOptions& options, const std::string& model_path);
SchedulerConfig scheduler_config(const LLMOptions& options);

}  // namespace minisgl
