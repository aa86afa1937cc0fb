// The attention backends' door in the plugin, in builds without Hopper's code.
#include <array>

#include "attention/cuda/backends.h"
#include "attention/cuda/flashinfer_kernels.h"
#include "attention/cuda_backends.h"

namespace minisgl::cuda {

bool fi_hopper_supports(const PagedCall&) { return false; }
cudaError_t fi_hopper_plan(FlashInferPlan&, const Workspace&, const PagedCall&, cudaStream_t) {
  return cudaErrorNotSupported;
}
cudaError_t fi_hopper_run(const FlashInferPlan&, const Workspace&, const PagedCall&, cudaStream_t) {
  return cudaErrorNotSupported;
}

}  // namespace minisgl::cuda

extern "C" __attribute__((visibility("default"))) minisgl::CudaAttentionTable
minisgl_cuda_attention() {
  using namespace minisgl::cuda;
  static constexpr std::array<minisgl::BuiltAttention, 2> kBuilt = {{
      {"fi", minisgl::cuda::make_flashinfer_backend, kFlashInferHeadDims},
      {"cudnn", make_cudnn_backend, kCudnnHeadDims, true},
  }};
  return {kBuilt.data(), kBuilt.size()};
}
