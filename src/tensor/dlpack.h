// DLPack: tensors handed to and taken from other libraries in the same process, without a copy.
// The layout below is DLPack's stable ABI (https://dmlc.github.io/dlpack), the unversioned
// DLManagedTensor that every consumer reads.
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace minisgl {

extern "C" {

struct DLDevice {
  int32_t device_type;  // 1 CPU, 2 CUDA, 3 pinned host memory
  int32_t device_id;
};

struct DLDataType {
  uint8_t code;  // 0 int, 1 unsigned, 2 float, 4 bfloat, 6 bool, 10 float8_e4m3fn, 12 float8_e5m2
  uint8_t bits;
  uint16_t lanes;
};

struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: row-major without gaps
  uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);  // called once by the consumer; may be null
};

}  // extern "C"

// The tensor goes out together with its memory: the consumer's call of deleter() frees both.
DLManagedTensor* to_dlpack(Tensor tensor);

// Only a look goes out: `view`'s memory must outlive the consumer's use of it.
DLManagedTensor* borrow_as_dlpack(const TensorView& view);

// Takes over `managed` (not null): its deleter runs when the Tensor ends. Strided tensors come in
// as they are while their last dimension is dense. Errors, after which the caller still owns
// `managed`: kUnsupported (element type, device, strides, more than TensorView::kMaxRank
// dimensions), kInvalidArgument (negative sizes, a null pointer with elements).
Tensor from_dlpack(DLManagedTensor* managed);

}  // namespace minisgl
