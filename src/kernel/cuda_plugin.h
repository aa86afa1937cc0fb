// NVIDIA GPUs without linking CUDA: the program is the same with and without them, and loads
// libminisgl_cuda.so when a GPU is asked for.
//
// The library is looked for at MINISGL_CUDA_PLUGIN (a file), beside the program, in ../lib of it,
// and where the system's loader looks. It stays loaded: what it made has its code there.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kernel/kernels.h"

namespace minisgl {

// Errors of all below: kUnsupported when the library is missing or of another version, kResource
// when it cannot be loaded or there is no driver or GPU, kInvalidArgument for a GPU that does not
// exist. Each says what to install or build. Thread-safe.

// The kernels of GPU `device`, with a stream of their own.
std::unique_ptr<Kernels> make_cuda_kernels(int device);

struct CudaDeviceInfo {
  std::string name;            // "NVIDIA H200"
  int compute_capability = 0;  // 90 for SM90
  int64_t total_bytes = 0;
  int64_t free_bytes = 0;
};
CudaDeviceInfo cuda_device_info(int device);

// GPUs that can be used; 0 when the library or the driver is missing. Never throws.
int cuda_device_count() noexcept;

// A C function of the library, for rooms above that keep their own table there.
void* cuda_plugin_symbol(const char* name);

}  // namespace minisgl
