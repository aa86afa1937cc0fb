// Hugging Face's generation_config.json: sampling defaults and every id that ends a text.
#pragma once

#include <string>

#include "core/model_config.h"
#include "utils/json.h"

namespace minisgl {

// Reads `json` (of the file `path`, for messages). Keys that are absent or null stay empty.
// Errors: kBadFile (of a wrong type, out of bounds).
GenerationConfig parse_generation_config(const Json& json, const std::string& path);

}  // namespace minisgl
