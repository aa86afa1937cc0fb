// Loading a model with something to look at meanwhile.
#pragma once

#include <memory>
#include <string>

#include "loader/hub.h"
#include "minisgl/llm.h"

namespace minisgl {

// Resolves options.model (downloading it with a progress bar on standard error if need be) and
// loads it; on a terminal the layers are counted.
std::unique_ptr<LLM> load_llm(LLMOptions options);
// The local path of a model.
std::string resolve_with_progress(const std::string& model, const std::string& model_source);

}  // namespace minisgl
