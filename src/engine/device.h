// Where an engine computes: the CPU's kernels, or a GPU's out of the CUDA plugin.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "attention/registry.h"
#include "kernel/kernels.h"
#include "utils/thread_pool.h"

namespace minisgl {

struct OpenedDevice {
  std::string name;  // "cpu", "cuda:0": no "auto"
  std::unique_ptr<Kernels> kernels;
  AttentionTarget attention;  // its dtype is the model's, set later
  int64_t usable_bytes = 0;   // for weights and KV, before the model is loaded
};

// name: "auto" (the first GPU where the plugin and a GPU are there, else the CPU), "cpu", "cuda",
// "cuda:N". `threads` outlives the kernels. Errors: kInvalidArgument for other names and GPUs that
// do not exist; what kernel/cuda_plugin.h says.
OpenedDevice open_device(const std::string& name, ThreadPool& threads, const std::string& isa);

// Of usable_bytes, what is in use now that the model is loaded: on a GPU as its driver says, on the
// CPU the checkpoint's size.
int64_t used_bytes(const OpenedDevice& device, int64_t checkpoint_bytes);

}  // namespace minisgl
