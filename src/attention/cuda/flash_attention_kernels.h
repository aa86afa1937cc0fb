// FlashAttention 3's Hopper kernels through their own parameter struct. Lengths and page tables are
// read on the device, so there is no plan; how far a call may split its KV ranges follows from its
// sizes alone.
#pragma once

#include "attention/cuda/paged_call.h"

namespace minisgl::cuda {

struct FlashScratch {
  int32_t* scheduler = nullptr;  // zeroed once, kFlashSchedulerInts elements
  float* partial_out = nullptr;  // [splits, Hq, T, D]
  float* partial_lse = nullptr;  // [splits, Hq, T]
  size_t partial_out_bytes = 0;
  size_t partial_lse_bytes = 0;
  float* lse = nullptr;  // [Hq, T] that the kernel writes and nobody reads
  size_t lse_bytes = 0;
};
constexpr int kFlashSchedulerInts = 1 << 16;
constexpr int kFlashMaxBatch = kFlashSchedulerInts / 6;

// bfloat16, head dim 128, any page size and GQA group, window; no softcap, no sinks. SM90.
bool fa_supports(const PagedCall& call);
// cudaErrorInvalidConfiguration when the batch exceeds kFlashMaxBatch or the scratch.
cudaError_t fa_run(const PagedCall& call, const FlashScratch& scratch, int num_multiprocessors,
                   cudaStream_t stream);

}  // namespace minisgl::cuda
