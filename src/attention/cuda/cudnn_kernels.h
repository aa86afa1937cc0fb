// cuDNN's fused attention over pages, through its C++ frontend. A plan is compiled for one shape
// (batch, longest query, table width, pool) and kept; lengths and tables are read on the device.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "attention/cuda/paged_call.h"

namespace minisgl::cuda {

// Owns the handle and the plans. One thread, one stream. Errors: std::runtime_error with cuDNN's
// own words.
class CudnnAttention {
 public:
  explicit CudnnAttention(cudaStream_t stream);
  ~CudnnAttention();

  // Pure decode: one query a request. q and out rows may be strided. Window yes; softcap and sinks
  // no. The first call of a shape compiles for 50 ms to a second.
  void decode(const PagedCall& call);

 private:
  struct Plans;
  std::unique_ptr<Plans> plans_;
};

}  // namespace minisgl::cuda
