#include "tensor/dlpack.h"

#include <array>
#include <memory>
#include <utility>

namespace minisgl {
namespace {

constexpr int32_t kDLCpu = 1;
constexpr int32_t kDLCuda = 2;
constexpr int32_t kDLPinnedHost = 3;

struct TypePair {
  DType dtype;
  DLDataType dl;
};

constexpr TypePair kTypes[] = {
    {DType::kFloat32, {2, 32, 1}},    {DType::kFloat16, {2, 16, 1}}, {DType::kBFloat16, {4, 16, 1}},
    {DType::kFloat8E4M3, {10, 8, 1}}, {DType::kInt8, {0, 8, 1}},     {DType::kUInt8, {1, 8, 1}},
    {DType::kFloat8E5M2, {12, 8, 1}}, {DType::kInt32, {0, 32, 1}},   {DType::kInt64, {0, 64, 1}},
    {DType::kBool, {6, 8, 1}},
};

DLDataType to_dl_type(DType dtype) {
  for (const TypePair& pair : kTypes) {
    if (pair.dtype == dtype) return pair.dl;
  }
  throw_error(ErrorKind::kUnsupported, "DLPack has no element type for {}", dtype_name(dtype));
}

DType from_dl_type(DLDataType dl) {
  for (const TypePair& pair : kTypes) {
    if (pair.dl.code == dl.code && pair.dl.bits == dl.bits && pair.dl.lanes == dl.lanes) {
      return pair.dtype;
    }
  }
  throw_error(ErrorKind::kUnsupported,
              "DLPack tensor with type code {}, {} bits, {} lanes is not supported; float32, "
              "float16, bfloat16, float8, int8, uint8, int32, int64 and bool are",
              dl.code, dl.bits, dl.lanes);
}

Device from_dl_device(DLDevice dl) {
  if (dl.device_type == kDLCpu || dl.device_type == kDLPinnedHost) return Device::cpu();
  if (dl.device_type == kDLCuda) return Device::cuda(dl.device_id);
  throw_error(ErrorKind::kUnsupported,
              "DLPack tensor on device type {} is not supported; CPU (1), CUDA (2) and pinned host "
              "memory (3) are",
              dl.device_type);
}

// What manager_ctx points to: the struct itself, its arrays, and the memory if it is handed over.
struct Exported {
  DLManagedTensor managed{};
  std::array<int64_t, TensorView::kMaxRank> shape{};
  std::array<int64_t, TensorView::kMaxRank> strides{};
  Tensor owned;
};

DLManagedTensor* export_view(const TensorView& view, Tensor owned) {
  auto exported = std::make_unique<Exported>();
  for (int i = 0; i < view.rank(); ++i) {
    exported->shape[static_cast<size_t>(i)] = view.dim(i);
    exported->strides[static_cast<size_t>(i)] = view.stride(i);
  }
  const Device device = view.device();
  exported->managed.dl_tensor = {
      .data = view.raw(),
      .device = {device.is_cpu() ? kDLCpu : kDLCuda, device.index},
      .ndim = view.rank(),
      .dtype = to_dl_type(view.dtype()),
      .shape = exported->shape.data(),
      .strides = exported->strides.data(),
      .byte_offset = 0,
  };
  exported->owned = std::move(owned);
  exported->managed.manager_ctx = exported.get();
  exported->managed.deleter = [](DLManagedTensor* self) {
    delete static_cast<Exported*>(self->manager_ctx);
  };
  return &exported.release()->managed;
}

}  // namespace

DLManagedTensor* to_dlpack(Tensor tensor) {
  const TensorView view = tensor.view();
  return export_view(view, std::move(tensor));
}

DLManagedTensor* borrow_as_dlpack(const TensorView& view) { return export_view(view, Tensor()); }

Tensor from_dlpack(DLManagedTensor* managed) {
  const DLTensor& dl = managed->dl_tensor;
  if (dl.ndim < 0 || dl.ndim > TensorView::kMaxRank) {
    throw_error(ErrorKind::kUnsupported, "DLPack tensor of {} dimensions; at most {} are supported",
                dl.ndim, TensorView::kMaxRank);
  }
  const auto rank = static_cast<size_t>(dl.ndim);
  int64_t numel = 1;
  for (size_t i = 0; i < rank; ++i) {
    if (dl.shape[i] < 0 || __builtin_mul_overflow(numel, dl.shape[i], &numel)) {
      throw_error(ErrorKind::kInvalidArgument, "DLPack tensor whose dimension {} is {}", i,
                  dl.shape[i]);
    }
  }
  if (dl.data == nullptr && numel > 0) {
    throw_error(ErrorKind::kInvalidArgument, "DLPack tensor of {} elements without data", numel);
  }
  // No elements, no memory: a Tensor still needs an address to own, and this one is never read.
  void* data = dl.data == nullptr ? static_cast<void*>(managed)
                                  : static_cast<std::byte*>(dl.data) + dl.byte_offset;
  const DType dtype = from_dl_type(dl.dtype);
  const Device device = from_dl_device(dl.device);
  const std::span<const int64_t> shape(dl.shape, rank);
  const bool dense = dl.strides == nullptr || numel == 0;
  if (!dense && rank > 0 && dl.shape[rank - 1] > 1 && dl.strides[rank - 1] != 1) {
    throw_error(ErrorKind::kUnsupported,
                "DLPack tensor whose last dimension has stride {}, expected 1; make it contiguous",
                dl.strides[rank - 1]);
  }
  const TensorView view = dense
                              ? TensorView(data, dtype, shape, device)
                              : TensorView::strided(data, dtype, shape, {dl.strides, rank}, device);
  return Tensor(view, [managed](void*) {
    if (managed->deleter != nullptr) managed->deleter(managed);
  });
}

}  // namespace minisgl
