// Opens whatever a model is stored as: a Hugging Face folder or a GGUF file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/model_config.h"
#include "loader/weights.h"

namespace minisgl {

struct OpenOptions {
  bool dummy_weight = false;  // random weights; only the config is read
  uint64_t seed = 0;          // of the random weights
};

struct OpenedModel {
  ModelConfig config;
  GenerationConfig generation;
  std::unique_ptr<Checkpoint> checkpoint;
  // Where the tokenizer is: the folder (tokenizer.json, tokenizer.model and their like in it), or
  // the GGUF file itself.
  std::string tokenizer_path;
  std::string format;  // "safetensors", "gguf" or "dummy"
};

// `path`: a folder with config.json and safetensors, a folder with exactly one GGUF model, or a
// GGUF file (of a split one the first shard). With dummy_weight also a config.json by itself.
// Reads headers and configs; the weights themselves stay in their mapped files.
// Errors: kNotFound (no such path, no config.json, no weights), kBadFile, kUnsupported (PyTorch
// pickles, unknown formats).
OpenedModel open_model(const std::string& path, const OpenOptions& options = {});

}  // namespace minisgl
