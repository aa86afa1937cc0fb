// Hugging Face's config.json, in both of its styles, as a ModelConfig.
#pragma once

#include <string>

#include "core/model_config.h"
#include "utils/json.h"

namespace minisgl {

// Reads `json` (of the file `path`, for messages) with the defaults and rules that Hugging Face
// transformers has for the model type: rope_theta and rope_scaling, or rope_parameters;
// torch_dtype, or dtype; multimodal wrappers by their text_config; sliding windows.
// Unknown architectures are read too: the registry of models refuses them by name.
// Errors: kBadFile (missing, of a wrong type, out of bounds), kUnsupported (a rope scaling or a
// quantisation that we do not have).
ModelConfig parse_hf_config(const Json& json, const std::string& path);

// Whether `json` says in which dtype the weights were saved.
bool hf_config_has_dtype(const Json& json);

}  // namespace minisgl
