// One maker a model file; registry.cpp gives them their architectures' names.
#pragma once

#include <memory>

#include "models/model.h"

namespace minisgl {

using ModelMaker = std::unique_ptr<Model>(const ModelConfig& config, const LayerInit& w,
                                          int64_t max_seq_len, const LoadProgress& progress);

ModelMaker make_llama;
ModelMaker make_qwen2;
ModelMaker make_qwen3;
ModelMaker make_qwen3_moe;

}  // namespace minisgl
