// The library's door: see plugin_symbols.h.
#include <cstring>

#include "kernel/cuda/cuda_kernels.h"
#include "kernel/cuda/plugin_symbols.h"
#include "minisgl/version.h"

#define MINISGL_PLUGIN_EXPORT extern "C" __attribute__((visibility("default")))

MINISGL_PLUGIN_EXPORT const char* minisgl_cuda_version() { return minisgl::kVersion; }

MINISGL_PLUGIN_EXPORT minisgl::Kernels* minisgl_cuda_make_kernels(int device) {
  return new minisgl::cuda::CudaKernels(device);
}

MINISGL_PLUGIN_EXPORT void minisgl_cuda_device_info(int device, minisgl::CudaPluginDevice* out) {
  minisgl::cuda::check_device(device);
  cudaDeviceProp properties{};
  MINISGL_CUDA(cudaGetDeviceProperties(&properties, device));
  MINISGL_CUDA(cudaSetDevice(device));
  size_t free_bytes = 0, total_bytes = 0;
  MINISGL_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));
  static_assert(sizeof(out->name) >= sizeof(properties.name));
  std::memcpy(out->name, properties.name, sizeof(properties.name));
  out->compute_capability = properties.major * 10 + properties.minor;
  out->total_bytes = static_cast<int64_t>(total_bytes);
  out->free_bytes = static_cast<int64_t>(free_bytes);
}

MINISGL_PLUGIN_EXPORT int minisgl_cuda_device_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}
