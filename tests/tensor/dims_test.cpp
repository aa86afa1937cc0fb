#include "tensor/dims.h"

#include <gtest/gtest.h>

#include <string>

namespace minisgl {
namespace {

TensorView view(std::initializer_list<int64_t> shape, DType dtype = DType::kFloat32) {
  static float memory = 0.0f;  // never read: only shapes are looked at
  return TensorView(&memory, dtype, shape);
}

template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInternal);
    return error.what();
  }
  return "no error";
}

TEST(Dims, LearnsNamesAndHoldsLaterTensorsToThem) {
  Dims dims("store_kv");
  dims.match("k", view({7, 8, 128}), {"T", "Hkv", "D"})
      .match("v", view({7, 8, 128}), {"T", "Hkv", "D"})
      .match("out_loc", view({7}), {"T"});
  EXPECT_EQ(dims["T"], 7);
  EXPECT_EQ(dims["D"], 128);
}

TEST(Dims, WritesItsOwnMessage) {
  EXPECT_EQ(message_of([] {
              Dims("store_kv")
                  .match("k", view({7, 8, 128}), {"T", "Hkv", "D"})
                  .match("v", view({7, 2, 128}), {"T", "Hkv", "D"});
            }),
            "store_kv: v is [7, 2, 128], expected [T, Hkv, D] with T=7, Hkv=8, D=128");
}

TEST(Dims, WritesTheRankThatItExpected) {
  EXPECT_EQ(message_of([] {
              Dims("norm").bind("D", 64).match("x", view({64}), {"T", "D"});
            }),
            "norm: x is [64], expected [T, D] with D=64");
  EXPECT_EQ(message_of([] {
              Dims("norm").match("x", view({64}), {"T", "D"});
            }),
            "norm: x is [64], expected [T, D]");
}

TEST(Dims, TakesNumbersAndAnything) {
  Dims("op").match("gate_up", view({5, 2, 16}), {"T", "2", "_"});
  EXPECT_EQ(message_of([] {
              Dims("op").match("gate_up", view({5, 3, 16}), {"T", "2", "_"});
            }),
            "op: gate_up is [5, 3, 16], expected [T, 2, _] with T=5");
}

TEST(Dims, RefusesASecondSizeOfOneTensor) {
  EXPECT_EQ(message_of([] {
              Dims("op").match("w", view({4, 5}), {"D", "D"});
            }),
            "op: w is [4, 5], expected [D, D] with D=4");
}

TEST(Dims, ChecksElementTypes) {
  Dims("op").dtype("ids", view({4}, DType::kInt32), DType::kInt32);
  EXPECT_EQ(message_of([] { Dims("op").dtype("ids", view({4}), DType::kInt32); }),
            "op: ids is float32 [4] on cpu, expected int32");
}

TEST(Dims, ANameThatNoTensorHadIsAnError) {
  EXPECT_NE(message_of([] { Dims("op")["T"]; }).find("no tensor had a dimension T"),
            std::string::npos);
  EXPECT_NE(message_of([] { Dims("op").bind("T", 1).bind("T", 2); }).find("T is 1 and cannot be 2"),
            std::string::npos);
}

}  // namespace
}  // namespace minisgl
