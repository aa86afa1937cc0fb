// y = x W^T through cuBLASLt, with the algorithm of each shape remembered.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "kernel/cuda/runtime.h"
#include "tensor/dtype.h"

namespace minisgl::cuda {

// Sums in float32; float32 products are float32's own, never TF32. One thread, one stream.
class Gemm {
 public:
  explicit Gemm(cudaStream_t stream);
  Gemm(Gemm&&) = delete;
  ~Gemm();

  struct Problem {
    int64_t rows, n, k;          // x: [rows, k], w: [n, k] dense, y: [rows, n]
    int64_t x_stride, y_stride;  // elements from row to row
    DType type;                  // of x and w
    DType y_type;                // `type` or float32
    bool operator==(const Problem&) const = default;
  };
  void run(void* y, const void* x, const void* w, const Problem& problem);

 private:
  struct Hash {
    size_t operator()(const Problem& p) const;
  };
  const cublasLtMatmulAlgo_t& algorithm(const Problem& problem);

  cudaStream_t stream_;
  cublasLtHandle_t handle_ = nullptr;
  DeviceMemory workspace_;
  std::unordered_map<Problem, cublasLtMatmulAlgo_t, Hash> algorithms_;
};

}  // namespace minisgl::cuda
