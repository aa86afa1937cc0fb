#include "tensor/tensor.h"

#include <fmt/ranges.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "utils/math.h"

namespace minisgl {

std::string device_name(Device device) {
  return device.is_cpu() ? "cpu" : fmt::format("cuda:{}", device.index);
}

TensorView::TensorView(void* data, DType dtype, std::span<const int64_t> shape, Device device)
    : data_(data), rank_(static_cast<int>(shape.size())), dtype_(dtype), device_(device) {
  MINISGL_CHECK(rank_ <= kMaxRank && !is_block_format(dtype));
  int64_t stride = 1;
  for (int i = rank_ - 1; i >= 0; --i) {
    const auto at = static_cast<size_t>(i);
    MINISGL_CHECK(shape[at] >= 0, "dimension {} is {}", i, shape[at]);
    shape_[at] = shape[at];
    strides_[at] = stride;
    stride *= shape[at];
  }
}

TensorView TensorView::strided(void* data, DType dtype, std::span<const int64_t> shape,
                               std::span<const int64_t> strides, Device device) {
  TensorView view(data, dtype, shape, device);
  MINISGL_CHECK(
      strides.size() == shape.size() && (shape.empty() || shape.back() <= 1 || strides.back() == 1),
      "the last dimension of {} is not dense", view.describe());
  std::copy(strides.begin(), strides.end(), view.strides_.begin());
  return view;
}

int64_t TensorView::numel() const {
  int64_t n = 1;
  for (const int64_t d : shape()) n *= d;
  return n;
}

bool TensorView::is_contiguous() const {
  int64_t expected = 1;
  for (int i = rank_ - 1; i >= 0; --i) {
    if (dim(i) != 1 && stride(i) != expected) return false;
    expected *= dim(i);
  }
  return true;
}

TensorView TensorView::slice(int64_t begin, int64_t count) const {
  MINISGL_CHECK(rank_ >= 1 && begin >= 0 && count >= 0 && begin + count <= dim(0),
                "rows [{}, {}) of {}", begin, begin + count, describe());
  TensorView part = *this;
  part.shape_[0] = count;
  part.data_ = static_cast<std::byte*>(data_) + begin * stride(0) * block_bytes(dtype_);
  return part;
}

TensorView TensorView::select(int64_t i) const {
  const TensorView row = slice(i, 1);
  TensorView part = row;
  part.rank_ = rank_ - 1;
  for (int d = 0; d + 1 < rank_; ++d) {
    part.shape_[static_cast<size_t>(d)] = dim(d + 1);
    part.strides_[static_cast<size_t>(d)] = stride(d + 1);
  }
  return part;
}

TensorView TensorView::columns(int64_t begin, int64_t count) const {
  MINISGL_CHECK(rank_ >= 1 && begin >= 0 && count >= 0 && begin + count <= dim(-1),
                "columns [{}, {}) of {}", begin, begin + count, describe());
  TensorView part = *this;
  part.shape_[static_cast<size_t>(rank_ - 1)] = count;
  part.data_ = static_cast<std::byte*>(data_) + begin * block_bytes(dtype_);
  return part;
}

TensorView TensorView::split_heads(int64_t heads, int64_t dim_per_head) const {
  MINISGL_CHECK(rank_ >= 1 && rank_ < kMaxRank && heads * dim_per_head == dim(-1),
                "{} heads of {} from {}", heads, dim_per_head, describe());
  TensorView part = *this;
  part.rank_ = rank_ + 1;
  part.shape_[static_cast<size_t>(rank_ - 1)] = heads;
  part.strides_[static_cast<size_t>(rank_ - 1)] = dim_per_head;
  part.shape_[static_cast<size_t>(rank_)] = dim_per_head;
  part.strides_[static_cast<size_t>(rank_)] = 1;
  return part;
}

TensorView TensorView::reshape(std::initializer_list<int64_t> shape) const {
  const TensorView other(data_, dtype_, shape, device_);
  MINISGL_CHECK(is_contiguous() && other.numel() == numel(), "{} as {}", describe(),
                other.describe());
  return other;
}

std::string TensorView::describe() const {
  return fmt::format("{} [{}] on {}", dtype_name(dtype_), fmt::join(shape(), ", "),
                     device_name(device_));
}

Tensor Tensor::zeros(DType dtype, std::span<const int64_t> shape) {
  const int64_t bytes = TensorView(nullptr, dtype, shape).bytes();
  const auto size = static_cast<size_t>(align_up(std::max<int64_t>(bytes, 1), 4096));
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw_error(ErrorKind::kResource, "cannot allocate {} bytes for a {} tensor: {}", bytes,
                dtype_name(dtype), std::strerror(errno));
  }
  return Tensor(TensorView(memory, dtype, shape), [size](void* p) { ::munmap(p, size); });
}

}  // namespace minisgl
