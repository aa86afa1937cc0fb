// Tensors: TensorView looks at memory, Tensor owns it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

#include "tensor/device.h"
#include "tensor/dtype.h"
#include "utils/error.h"

namespace minisgl {

// 16-bit floats are opaque here: tensor/half.h converts them.
struct Half {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};

template <class T>
constexpr DType dtype_of() {
  using U = std::remove_const_t<T>;
  if constexpr (std::is_same_v<U, float>) return DType::kFloat32;
  if constexpr (std::is_same_v<U, Half>) return DType::kFloat16;
  if constexpr (std::is_same_v<U, BFloat16>) return DType::kBFloat16;
  if constexpr (std::is_same_v<U, int8_t>) return DType::kInt8;
  if constexpr (std::is_same_v<U, uint8_t>) return DType::kUInt8;
  if constexpr (std::is_same_v<U, int32_t>) return DType::kInt32;
  if constexpr (std::is_same_v<U, int64_t>) return DType::kInt64;
  if constexpr (std::is_same_v<U, bool>) return DType::kBool;
}

// Shape, strides (in elements), dtype and device of memory that somebody else owns. Cheap to copy;
// at most kMaxRank dimensions; the innermost dimension is always dense. Plain dtypes only (weights
// in block formats are RawMatrix until they are packed).
class TensorView {
 public:
  static constexpr int kMaxRank = 5;

  TensorView() = default;
  TensorView(void* data, DType dtype, std::span<const int64_t> shape, Device device = {});
  TensorView(void* data, DType dtype, std::initializer_list<int64_t> shape, Device device = {})
      : TensorView(data, dtype, std::span<const int64_t>(shape.begin(), shape.size()), device) {}

  // With gaps between rows: `strides` in elements, one a dimension; the innermost must be dense.
  static TensorView strided(void* data, DType dtype, std::span<const int64_t> shape,
                            std::span<const int64_t> strides, Device device = {});

  // Over a host array: rank 1.
  template <class T>
  static TensorView of(std::span<T> values) {
    return TensorView(const_cast<std::remove_const_t<T>*>(values.data()), dtype_of<T>(),
                      {static_cast<int64_t>(values.size())});
  }

  bool empty() const { return data_ == nullptr; }
  int rank() const { return rank_; }
  int64_t dim(int i) const { return shape_[static_cast<size_t>(i < 0 ? i + rank_ : i)]; }
  int64_t stride(int i) const { return strides_[static_cast<size_t>(i < 0 ? i + rank_ : i)]; }
  std::span<const int64_t> shape() const { return {shape_.data(), static_cast<size_t>(rank_)}; }
  DType dtype() const { return dtype_; }
  Device device() const { return device_; }
  int64_t numel() const;
  int64_t bytes() const { return numel() * block_bytes(dtype_); }
  bool is_contiguous() const;

  void* raw() const { return data_; }
  // The elements, if T is this tensor's type; an internal error otherwise.
  template <class T>
  T* data() const {
    MINISGL_CHECK(dtype_of<T>() == dtype_, "asked for {}, tensor is {}", dtype_name(dtype_of<T>()),
                  describe());
    return static_cast<T*>(data_);
  }
  // A host vector's elements as a span; rank 1 and contiguous.
  template <class T>
  std::span<T> values() const {
    MINISGL_CHECK(device_.is_cpu() && is_contiguous());
    return {data<T>(), static_cast<size_t>(numel())};
  }

  // Rows [begin, begin + count) of the first dimension.
  TensorView slice(int64_t begin, int64_t count) const;
  // Element i of the first dimension: one dimension fewer.
  TensorView select(int64_t i) const;
  // Columns [begin, begin + count) of the last dimension: a strided view.
  TensorView columns(int64_t begin, int64_t count) const;
  // The last dimension split into [heads, dim]: works on strided rows too.
  TensorView split_heads(int64_t heads, int64_t dim) const;
  // Another shape of the same number of elements; contiguous tensors only.
  TensorView reshape(std::initializer_list<int64_t> shape) const;

  // "float32 [7, 8, 128] on cpu"
  std::string describe() const;

 private:
  void* data_ = nullptr;
  std::array<int64_t, kMaxRank> shape_{};
  std::array<int64_t, kMaxRank> strides_{};
  int rank_ = 0;
  DType dtype_ = DType::kFloat32;
  Device device_;
};

// Owns its memory; move-only. On the CPU: 64-byte aligned, zeroed lazily by the kernel (pages are
// touched on first use). Other devices hand their memory in with its deleter.
class Tensor {
 public:
  Tensor() = default;
  // Errors: kResource with the size asked for.
  static Tensor zeros(DType dtype, std::span<const int64_t> shape);
  static Tensor zeros(DType dtype, std::initializer_list<int64_t> shape) {
    return zeros(dtype, std::span<const int64_t>(shape.begin(), shape.size()));
  }
  using Deleter = std::function<void(void*)>;
  Tensor(TensorView view, Deleter deleter) : view_(view), memory_(view.raw(), std::move(deleter)) {}

  const TensorView& view() const { return view_; }
  operator TensorView() const { return view_; }  // NOLINT: a Tensor is used as its view
  bool empty() const { return view_.empty(); }

 private:
  TensorView view_;
  std::unique_ptr<void, Deleter> memory_{nullptr, [](void*) {}};
};

}  // namespace minisgl
