// The attention backends' door in the plugin, in builds that hold Hopper's code.
#include <array>

#include "attention/cuda/backends.h"
#include "attention/cuda_backends.h"

extern "C" __attribute__((visibility("default"))) minisgl::CudaAttentionTable
minisgl_cuda_attention() {
  using namespace minisgl::cuda;
  static constexpr std::array<minisgl::BuiltAttention, 3> kBuilt = {{
      {"fi", minisgl::cuda::make_flashinfer_backend, kFlashInferHeadDims},
      {"fa", minisgl::cuda::make_flash_attention_backend, kFlashAttentionHeadDims},
      {"cudnn", make_cudnn_backend, kCudnnHeadDims, true},
  }};
  return {kBuilt.data(), kBuilt.size()};
}
