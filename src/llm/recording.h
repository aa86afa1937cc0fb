// The setup that a recording begins with: enough to start the same engine again.
#pragma once

#include "engine/engine.h"
#include "minisgl/llm.h"
#include "scheduler/config.h"
#include "utils/json.h"

namespace minisgl {

// Resolved values: what "auto" became on this machine, instruction set and pages included.
Json recording_setup(const LLMOptions& options, const EngineConfig& resolved);
// Error: kBadFile for anything but what recording_setup() gives.
LLMOptions options_from_setup(const Json& setup);

}  // namespace minisgl
