// Rotary position embedding (Su et al. 2021): the table of angles that all layers share.
#pragma once

#include <vector>

#include "core/model_config.h"
#include "kernel/kernels.h"

namespace minisgl {

// Inverse frequencies [rotary_dim / 2] and what cos and sin are multiplied by, as Hugging Face
// computes them (float32): default, linear, llama3 (Llama 3.1), yarn (Peng et al. 2023).
struct RopeFrequencies {
  std::vector<float> inv_freq;
  float attention_factor = 1.0f;
};
RopeFrequencies rope_frequencies(const RopeConfig& rope, int64_t head_dim,
                                 int64_t max_position_embeddings);

// cos_sin: [max_seq_len, rotary_dim] float32 on the kernels' device.
class Rope {
 public:
  Rope(Kernels& kernels, const RopeConfig& rope, int64_t head_dim, int64_t max_position_embeddings,
       int64_t max_seq_len);
  TensorView cos_sin() const { return table_; }

 private:
  Tensor table_;
};

}  // namespace minisgl
