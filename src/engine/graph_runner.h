// Decode steps as graphs: a few batch sizes are captured with static inputs, and a batch is padded
// to the next size and replayed: a CUDA graph on a GPU. On the CPU the graph is emulated (the
// captured batch is run again over the static buffers), so that the whole data flow, padding
// included, is the same everywhere and a forgotten copy shows.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "attention/backend.h"
#include "core/batch.h"
#include "engine/device_inputs.h"
#include "engine/step.h"
#include "kernel/kernels.h"

namespace minisgl {

// 1, 2, 4, 8, 16, 24, … max_bs; empty when max_bs < 1.
std::vector<int> graph_batch_sizes(int64_t max_bs);

class GraphRunner {
 public:
  // Runs the model over a batch; the result stays good until the next run.
  using Forward = std::function<TensorView(Batch&)>;

  // `dummy` fills padded batches. Captures every size, largest first. On a GPU the static inputs
  // are those of `inputs`, which a step's own are uploaded to anyway.
  GraphRunner(std::vector<int> sizes, Kernels& kernels, const DeviceInputs& inputs,
              AttentionBackend& backend, Req& dummy, int64_t max_seq_len, TensorView page_table,
              Forward forward);

  // Fills batch.padded_reqs: reqs, then dummies up to the captured size if this batch can use one.
  void pad(Batch& batch) const;
  bool can_use(const Batch& batch) const;
  // logits [padded_size, V] of a prepared batch that can_use().
  TensorView replay(Batch& batch);

 private:
  struct Captured {
    int size;
    Batch batch;  // reads the static inputs
    TensorView logits;
    std::unique_ptr<RecordedWork> graph;
  };
  void make_inputs(const DeviceInputs& inputs);
  void capture(Captured& captured);

  std::vector<int> sizes_;  // ascending
  Kernels& kernels_;
  AttentionBackend& backend_;
  Req& dummy_;
  TensorView page_table_;
  Forward forward_;
  std::vector<Tensor> memory_;                  // of the static inputs on the CPU
  TensorView input_ids_, positions_, out_loc_;  // [>= max size] int32, static
  std::vector<Captured> captured_;              // one a size, ascending
};

}  // namespace minisgl
