// The C names under which libminisgl_cuda.so is used. Errors cross as minisgl::Error: program and
// library are built by one compiler from one source, which the version symbol guards.
#pragma once

#include <cstdint>

namespace minisgl {

class Kernels;

struct CudaPluginDevice {
  char name[256];
  int compute_capability;
  int64_t total_bytes;
  int64_t free_bytes;
};

using CudaPluginVersion = const char*();
using CudaPluginMakeKernels = Kernels*(int device);  // the caller owns what it gets
using CudaPluginDeviceInfo = void(int device, CudaPluginDevice* out);
using CudaPluginDeviceCount = int();

inline constexpr const char* kCudaPluginVersion = "minisgl_cuda_version";
inline constexpr const char* kCudaPluginMakeKernels = "minisgl_cuda_make_kernels";
inline constexpr const char* kCudaPluginDeviceInfo = "minisgl_cuda_device_info";
inline constexpr const char* kCudaPluginDeviceCount = "minisgl_cuda_device_count";

}  // namespace minisgl
