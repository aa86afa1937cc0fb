// Bounds for what a config may say: far above any model, far below where sizes would overflow.
#pragma once

#include <cstdint>
#include <string>

#include "core/model_config.h"

namespace minisgl {

constexpr int64_t kMaxLayers = 4096;
constexpr int64_t kMaxWidth = int64_t{1} << 20;  // hidden, intermediate and head sizes
constexpr int64_t kMaxHeads = 4096;
constexpr int64_t kMaxHeadDim = 4096;
constexpr int64_t kMaxVocab = int64_t{1} << 24;
constexpr int64_t kMaxPositions = int64_t{1} << 30;
constexpr int64_t kMaxExperts = 4096;

// What must hold between the values of a config; kBadFile otherwise, with `path` in the message.
// Fills in what follows from other values.
void check_config(ModelConfig& config, const std::string& path);
// Every id below vocab_size.
void check_eos(const GenerationConfig& generation, int64_t vocab_size, const std::string& path);

}  // namespace minisgl
