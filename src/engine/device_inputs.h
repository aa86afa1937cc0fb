// A step's small inputs on a GPU, at fixed addresses.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/step.h"
#include "kernel/kernels.h"
#include "tensor/tensor.h"

namespace minisgl {

// On the CPU a batch looks at the step's own vectors and nothing here does anything. One thread.
class DeviceInputs {
 public:
  // For steps of up to max_tokens tokens. `kernels` outlives the object.
  DeviceInputs(Kernels& kernels, int64_t max_tokens);

  // Copies ids, positions, locations and wanted rows to the device and lets the batch look there.
  void upload(Step& step);

  // The places that upload() fills, [max_tokens]; empty on the CPU.
  TensorView input_ids() const { return input_ids_; }
  TensorView positions() const { return positions_; }
  TensorView out_loc() const { return out_loc_; }

 private:
  Kernels& kernels_;
  Tensor input_ids_, positions_, out_loc_, logit_rows_;  // [max_tokens] int32
};

// What comes back from a GPU: the logits, or only the ids of the largest. On the CPU the logits are
// where they are. One thread.
class DeviceOutputs {
 public:
  explicit DeviceOutputs(Kernels& kernels) : kernels_(kernels) {}

  // logits: [n, V] float32 -> the same on the host; good until the next call.
  TensorView to_host(TensorView logits);
  // logits: [n, V] -> [n] ids of the largest, the lowest of equals; good until the next call.
  std::span<const int32_t> argmax(TensorView logits);

 private:
  Kernels& kernels_;
  Tensor host_logits_;  // grows, never shrinks
  Tensor device_ids_;
  std::vector<int32_t> ids_;
};

}  // namespace minisgl
