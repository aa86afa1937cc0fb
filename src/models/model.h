// A model: token ids in, logits out. It never sees a request, only the Context.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/context.h"
#include "core/model_config.h"
#include "layers/init.h"

namespace minisgl {

class Model {
 public:
  virtual ~Model() = default;
  // Computes ctx.batch.input_ids; returns float32 logits [n, V] of the rows in
  // ctx.batch.logit_rows (empty: of every row, in order). The result lives in ctx.arena.
  virtual TensorView forward(Context& ctx) const = 0;
};

// Bytes of arena that a step of T tokens with `logit_rows` rows of logits needs at most.
int64_t activation_bytes(const ModelConfig& config, int64_t tokens, int64_t logit_rows);

// Makes the model that config.architecture names, with its weights from `weights` (the root of a
// checkpoint) for positions below max_seq_len. `progress(done, total)` is called after each layer.
// Errors: kUnsupported with the list of architectures; what loading finds wrong.
using LoadProgress = std::function<void(int64_t done, int64_t total)>;
std::unique_ptr<Model> make_model(const ModelConfig& config, const LayerInit& weights,
                                  int64_t max_seq_len, const LoadProgress& progress);
std::vector<std::string> known_architectures();
// Names in a checkpoint that a model leaves unread on purpose (a tied lm_head.weight, …).
std::vector<std::string> ignored_weights(const ModelConfig& config);

}  // namespace minisgl
