// The metadata of a GGUF file as the configs that config.json and generation_config.json give.
#pragma once

#include "core/model_config.h"
#include "utils/gguf.h"

namespace minisgl {

// What metadata does not say is read off the tensors: vocabulary, biases, tied head, and Llama 3's
// rope factors. Errors: kBadFile (missing, of a wrong type, out of bounds), kUnsupported.
ModelConfig config_from_gguf(const GgufFile& file);

// All ids that end a text (of text, of a turn, of a message), and the sampling defaults, if any.
GenerationConfig generation_from_gguf(const GgufFile& file);

}  // namespace minisgl
