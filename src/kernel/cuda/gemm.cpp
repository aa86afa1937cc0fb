#include "kernel/cuda/gemm.h"

#include <library_types.h>

#include "tensor/dtype.h"
#include "utils/error.h"
#include "utils/math.h"

namespace minisgl::cuda {
namespace {

constexpr size_t kWorkspaceBytes = size_t{32} << 20;  // what NVIDIA advises for Hopper

cudaDataType_t cuda_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return CUDA_R_32F;
    case DType::kFloat16:
      return CUDA_R_16F;
    case DType::kBFloat16:
      return CUDA_R_16BF;
    default:
      throw_error(ErrorKind::kInternal, "linear: {} has no cuBLASLt type here", dtype_name(dtype));
  }
}

// cuBLASLt is column-major: y^T [n, rows] = w [n, k] x^T [k, rows], with w stored transposed.
struct Descriptors {
  cublasLtMatmulDescOpaque_t operation;
  cublasLtMatrixLayoutOpaque_t w, x, y;

  explicit Descriptors(const Gemm::Problem& p) {
    MINISGL_CUDA(cublasLtMatmulDescInit(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    const cublasOperation_t transposed = CUBLAS_OP_T;
    MINISGL_CUDA(cublasLtMatmulDescSetAttribute(&operation, CUBLASLT_MATMUL_DESC_TRANSA,
                                                &transposed, sizeof(transposed)));
    const auto u = [](int64_t v) { return static_cast<uint64_t>(v); };
    MINISGL_CUDA(cublasLtMatrixLayoutInit(&w, cuda_type(p.type), u(p.k), u(p.n), p.k));
    MINISGL_CUDA(cublasLtMatrixLayoutInit(&x, cuda_type(p.type), u(p.k), u(p.rows), p.x_stride));
    MINISGL_CUDA(cublasLtMatrixLayoutInit(&y, cuda_type(p.y_type), u(p.n), u(p.rows), p.y_stride));
  }
};

}  // namespace

Gemm::Gemm(cudaStream_t stream) : stream_(stream), workspace_(kWorkspaceBytes) {
  MINISGL_CUDA(cublasLtCreate(&handle_));
}
Gemm::~Gemm() { cublasLtDestroy(handle_); }

size_t Gemm::Hash::operator()(const Problem& p) const {
  size_t hash = 0;
  for (const int64_t value : {p.rows, p.n, p.k, p.x_stride, p.y_stride,
                              static_cast<int64_t>(p.type), static_cast<int64_t>(p.y_type)}) {
    hash = (hash ^ static_cast<size_t>(value)) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 29;
  }
  return hash;
}

void Gemm::run(void* y, const void* x, const void* w, const Problem& problem) {
  const float one = 1.0f, zero = 0.0f;
  Descriptors d(problem);
  MINISGL_CUDA(cublasLtMatmul(handle_, &d.operation, &one, w, &d.w, x, &d.x, &zero, y, &d.y, y,
                              &d.y, &algorithm(problem), workspace_.data(), workspace_.bytes(),
                              stream_));
}

// A query takes 0.3 ms, so it is asked once a shape.
const cublasLtMatmulAlgo_t& Gemm::algorithm(const Problem& problem) {
  const auto found = algorithms_.find(problem);
  if (found != algorithms_.end()) return found->second;

  Descriptors d(problem);
  cublasLtMatmulPreferenceOpaque_t preference;
  MINISGL_CUDA(cublasLtMatmulPreferenceInit(&preference));
  MINISGL_CUDA(cublasLtMatmulPreferenceSetAttribute(&preference,
                                                    CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                    &kWorkspaceBytes, sizeof(kWorkspaceBytes)));
  cublasLtMatmulHeuristicResult_t best{};
  int count = 0;
  MINISGL_CUDA(cublasLtMatmulAlgoGetHeuristic(handle_, &d.operation, &d.w, &d.x, &d.y, &d.y,
                                              &preference, 1, &best, &count));
  MINISGL_CHECK(count > 0, "cuBLASLt has no algorithm for {} x {} x {} in {}", problem.rows,
                problem.n, problem.k, dtype_name(problem.type));
  return algorithms_.emplace(problem, best.algo).first->second;
}

}  // namespace minisgl::cuda
