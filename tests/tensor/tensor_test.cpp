#include "tensor/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <vector>

namespace minisgl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// float32 [2, 3, 4] holding 0, 1, 2, …
class TensorViewTest : public testing::Test {
 protected:
  TensorViewTest() { std::iota(memory_.begin(), memory_.end(), 0.0f); }
  std::array<float, 24> memory_{};
  TensorView view_{memory_.data(), DType::kFloat32, {2, 3, 4}};

  template <class F>
  static std::string message_of(F&& f) {
    try {
      f();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
};

TEST_F(TensorViewTest, KnowsItsShapeAndRowMajorStrides) {
  EXPECT_THAT(view_.shape(), ElementsAre(2, 3, 4));
  EXPECT_EQ(view_.dim(-1), 4);
  EXPECT_EQ(view_.stride(0), 12);
  EXPECT_EQ(view_.stride(-2), 4);
  EXPECT_EQ(view_.numel(), 24);
  EXPECT_EQ(view_.bytes(), 96);
  EXPECT_TRUE(view_.is_contiguous());
  EXPECT_EQ(view_.describe(), "float32 [2, 3, 4] on cpu");
}

TEST_F(TensorViewTest, SlicesRows) {
  const TensorView part = view_.slice(1, 1);
  EXPECT_THAT(part.shape(), ElementsAre(1, 3, 4));
  EXPECT_EQ(part.data<float>()[0], 12.0f);
  EXPECT_EQ(view_.slice(2, 0).numel(), 0);
}

TEST_F(TensorViewTest, SelectsOneElementOfTheFirstDimension) {
  const TensorView part = view_.select(1).select(2);
  EXPECT_THAT(part.values<float>(), ElementsAre(20, 21, 22, 23));
}

TEST_F(TensorViewTest, ColumnsAreStrided) {
  const TensorView part = view_.select(0).columns(1, 2);
  EXPECT_THAT(part.shape(), ElementsAre(3, 2));
  EXPECT_FALSE(part.is_contiguous());
  EXPECT_THAT(part.select(2).values<float>(), ElementsAre(9, 10));
}

TEST_F(TensorViewTest, SplitsHeadsOfStridedRows) {
  const TensorView part = view_.select(0).columns(0, 2).split_heads(2, 1);
  EXPECT_THAT(part.shape(), ElementsAre(3, 2, 1));
  EXPECT_EQ(part.select(1).select(1).values<float>()[0], 5.0f);
}

TEST_F(TensorViewTest, ReshapesWhatIsContiguous) {
  EXPECT_THAT(view_.reshape({4, 6}).select(3).values<float>(), ElementsAre(18, 19, 20, 21, 22, 23));
  EXPECT_THAT(message_of([&] { view_.reshape({5, 5}); }), HasSubstr("float32 [5, 5]"));
  EXPECT_THROW(view_.columns(0, 2).reshape({12}), Error);
}

TEST_F(TensorViewTest, StridedRowsAreSeenWithoutACopy) {
  const std::array<int64_t, 2> shape = {2, 3};
  const std::array<int64_t, 2> strides = {8, 1};
  const TensorView part = TensorView::strided(memory_.data(), DType::kFloat32, shape, strides);
  EXPECT_THAT(part.select(1).values<float>(), ElementsAre(8, 9, 10));
  const std::array<int64_t, 2> gaps = {8, 2};
  EXPECT_THROW(TensorView::strided(memory_.data(), DType::kFloat32, shape, gaps), Error);
}

TEST_F(TensorViewTest, RefusesToLeaveItsBounds) {
  EXPECT_THAT(message_of([&] { view_.slice(1, 2); }),
              HasSubstr("rows [1, 3) of float32 [2, 3, 4] on cpu"));
  EXPECT_THROW(view_.slice(-1, 1), Error);
  EXPECT_THROW(view_.select(2), Error);
  EXPECT_THROW(view_.columns(3, 2), Error);
  EXPECT_THROW(view_.split_heads(3, 2), Error);
  EXPECT_THROW(TensorView(memory_.data(), DType::kFloat32, {1, 1, 1, 1, 1, 1}), Error);
  EXPECT_THROW(TensorView(memory_.data(), DType::kFloat32, {-1}), Error);
  EXPECT_THROW(TensorView(memory_.data(), DType::kQ4_0, {32}), Error);
}

TEST_F(TensorViewTest, RefusesAnotherElementType) {
  EXPECT_THAT(message_of([&] { view_.data<int32_t>(); }),
              HasSubstr("asked for int32, tensor is float32 [2, 3, 4] on cpu"));
}

TEST_F(TensorViewTest, LooksAtHostArrays) {
  const std::vector<int32_t> ids = {4, 5, 6};
  const TensorView view = TensorView::of(std::span(ids));
  EXPECT_EQ(view.dtype(), DType::kInt32);
  EXPECT_THAT(view.values<int32_t>(), ElementsAre(4, 5, 6));
}

TEST(TensorTest, StartsZeroedAndAligned) {
  const Tensor tensor = Tensor::zeros(DType::kFloat32, {3, 5});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.view().raw()) % 64, 0u);
  EXPECT_THAT(tensor.view().values<float>(), testing::Each(0.0f));
}

TEST(TensorTest, MovesItsMemoryAndFreesItOnce) {
  int freed = 0;
  float memory = 0.0f;
  {
    Tensor first(TensorView(&memory, DType::kFloat32, {1}), [&](void*) { ++freed; });
    Tensor second = std::move(first);
    EXPECT_EQ(second.view().raw(), &memory);
  }
  EXPECT_EQ(freed, 1);
}

TEST(TensorTest, WithoutElementsIsAllowed) {
  EXPECT_EQ(Tensor::zeros(DType::kInt32, {0, 4}).view().numel(), 0);
}

TEST(TensorTest, AnAbsurdSizeIsAResourceError) {
  try {
    Tensor::zeros(DType::kFloat32, {int64_t{1} << 50});
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kResource);
  }
}

TEST(DeviceNames, ReadAsOnTheCommandLine) {
  EXPECT_EQ(device_name(Device::cpu()), "cpu");
  EXPECT_EQ(device_name(Device::cuda(1)), "cuda:1");
}

}  // namespace
}  // namespace minisgl
