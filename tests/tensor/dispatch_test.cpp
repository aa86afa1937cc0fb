#include "tensor/dispatch.h"

#include <gtest/gtest.h>

#include <string>

namespace minisgl {
namespace {

template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    return error.what();
  }
  return "no error";
}

TEST(DispatchFloat, CallsWithTheElementTypeAndReturns) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    EXPECT_EQ(dispatch_float(dtype, "op", []<class T>() { return dtype_of<T>(); }), dtype);
  }
}

TEST(DispatchFloat, ListsWhatIsSupported) {
  EXPECT_EQ(message_of([] { dispatch_float(DType::kInt32, "rms_norm", []<class T>() {}); }),
            "rms_norm: int32 is not supported; float32, float16, bfloat16 are");
}

TEST(DispatchBool, MakesATemplateArgument) {
  EXPECT_EQ(dispatch_bool(true, []<bool kCausal>() { return kCausal ? 1 : 0; }), 1);
  EXPECT_EQ(dispatch_bool(false, []<bool kCausal>() { return kCausal ? 1 : 0; }), 0);
}

TEST(DispatchHeadDim, MakesATemplateArgumentOrListsThem) {
  for (const int head_dim : {32, 64, 80, 96, 128, 192, 256}) {
    EXPECT_EQ(dispatch_head_dim(head_dim, "attention", []<int kDim>() { return kDim; }), head_dim);
  }
  EXPECT_EQ(message_of([] { dispatch_head_dim(72, "attention", []<int kDim>() { return kDim; }); }),
            "attention: head_dim 72 is not supported; 32, 64, 80, 96, 128, 192, 256 are");
}

}  // namespace
}  // namespace minisgl
