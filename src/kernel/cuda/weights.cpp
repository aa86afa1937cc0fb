// Weights on their way to the GPU: block formats are dequantised, the rest copied or converted.
#include <algorithm>
#include <cstring>
#include <vector>

#include "kernel/cuda/cuda_kernels.h"
#include "kernel/dequantize.h"
#include "tensor/half.h"
#include "utils/error.h"

namespace minisgl::cuda {
namespace {

constexpr int64_t kChunkBytes = int64_t{64} << 20;  // of host memory while loading

void convert_row(std::byte* out, DType dtype, const float* values, int64_t n) {
  if (dtype == DType::kFloat32) {
    std::memcpy(out, values, static_cast<size_t>(n) * sizeof(float));
    return;
  }
  auto* bits = reinterpret_cast<uint16_t*>(out);
  if (dtype == DType::kBFloat16) {
    for (int64_t i = 0; i < n; ++i) bits[i] = float_to_bfloat16(values[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) bits[i] = float_to_half(values[i]);
  }
}

// Rows as they are stored, one after another: what one copy can move.
bool is_dense(const RawMatrix& matrix) {
  return matrix.interleaved_head_dim == 0 && matrix.stride_bytes() == matrix.row_bytes();
}

// to: [rows, cols] of dtype on the device
void load(std::byte* to, const RawMatrix& matrix, DType dtype, cudaStream_t stream) {
  if (matrix.rows * matrix.cols == 0) return;
  if (matrix.dtype == dtype && is_dense(matrix)) {
    MINISGL_CUDA(cudaMemcpyAsync(to, matrix.data,
                                 static_cast<size_t>(matrix.rows * matrix.row_bytes()),
                                 cudaMemcpyHostToDevice, stream));
    return;
  }
  const int64_t row_bytes = bytes_of(dtype, matrix.cols);
  const int64_t chunk = std::clamp<int64_t>(kChunkBytes / row_bytes, 1, matrix.rows);
  std::vector<std::byte> rows(static_cast<size_t>(chunk * row_bytes));
  std::vector<float> values(static_cast<size_t>(matrix.cols));
  for (int64_t begin = 0; begin < matrix.rows; begin += chunk) {
    const int64_t count = std::min(chunk, matrix.rows - begin);
    for (int64_t r = 0; r < count; ++r) {
      std::byte* row = rows.data() + r * row_bytes;
      if (matrix.dtype == dtype) {
        std::memcpy(row, matrix.row(begin + r), static_cast<size_t>(row_bytes));
      } else {
        dequantize(values.data(), matrix.row(begin + r), matrix.dtype, matrix.cols);
        convert_row(row, dtype, values.data(), matrix.cols);
      }
    }
    // Pageable memory: done with when the call returns, so that `rows` can be filled again.
    MINISGL_CUDA(cudaMemcpyAsync(to + begin * row_bytes, rows.data(),
                                 static_cast<size_t>(count * row_bytes), cudaMemcpyHostToDevice,
                                 stream));
  }
  MINISGL_CUDA(cudaStreamSynchronize(stream));
}

}  // namespace

std::unique_ptr<PackedMatrix> CudaKernels::pack(std::span<const RawMatrix> parts, DType dtype) {
  use();
  MINISGL_CHECK(!parts.empty() && is_floating(dtype), "pack: {} parts in {}", parts.size(),
                dtype_name(dtype));
  int64_t rows = 0;
  for (const RawMatrix& part : parts) {
    MINISGL_CHECK(part.cols == parts.front().cols, "pack: parts of {} and {} columns", part.cols,
                  parts.front().cols);
    rows += part.rows;
  }
  auto matrix = std::make_unique<CudaMatrix>(rows, parts.front().cols, dtype);
  auto* to = static_cast<std::byte*>(matrix->data());
  for (const RawMatrix& part : parts) {
    load(to, part, dtype, stream());
    to += bytes_of(dtype, part.rows * part.cols);
  }
  return matrix;
}

Tensor CudaKernels::load_float(const RawMatrix& values) {
  const int64_t matrix[] = {values.rows, values.cols};
  const int64_t vector[] = {values.cols};
  Tensor result =
      values.rows == 1 ? allocate(DType::kFloat32, vector) : allocate(DType::kFloat32, matrix);
  load(static_cast<std::byte*>(result.view().raw()), values, DType::kFloat32, stream());
  return result;
}

}  // namespace minisgl::cuda
