#include "tensor/dlpack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <vector>

namespace minisgl {
namespace {

using testing::ElementsAre;

// A foreign library's tensor; counts how often its deleter runs.
struct Foreign {
  std::vector<float> memory = std::vector<float>(24, 1.5f);
  std::vector<int64_t> shape{2, 3, 4};
  std::vector<int64_t> strides{12, 4, 1};
  int deleted = 0;
  DLManagedTensor managed{};

  Foreign() {
    managed.dl_tensor = {memory.data(), {1, 0}, 3, {2, 32, 1}, shape.data(), strides.data(), 0};
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensor* self) {
      ++static_cast<Foreign*>(self->manager_ctx)->deleted;
    };
  }
};

TEST(ToDLPack, HandsOutTheSameMemoryAndFreesItOnce) {
  int freed = 0;
  std::array<float, 6> memory{};
  Tensor tensor(TensorView(memory.data(), DType::kFloat32, {2, 3}), [&](void*) { ++freed; });

  DLManagedTensor* managed = to_dlpack(std::move(tensor));
  const DLTensor& dl = managed->dl_tensor;
  EXPECT_EQ(dl.data, memory.data());
  EXPECT_EQ(dl.byte_offset, 0u);
  EXPECT_EQ(dl.ndim, 2);
  EXPECT_THAT(std::span(dl.shape, 2), ElementsAre(2, 3));
  EXPECT_THAT(std::span(dl.strides, 2), ElementsAre(3, 1));
  EXPECT_EQ(dl.device.device_type, 1);
  EXPECT_EQ(dl.dtype.code, 2);
  EXPECT_EQ(dl.dtype.bits, 32);
  EXPECT_EQ(dl.dtype.lanes, 1);
  EXPECT_EQ(freed, 0);
  managed->deleter(managed);
  EXPECT_EQ(freed, 1);
}

TEST(BorrowAsDLPack, KeepsStridesAndFreesNothing) {
  std::array<float, 12> memory{};
  const TensorView columns = TensorView(memory.data(), DType::kFloat32, {3, 4}).columns(1, 2);
  DLManagedTensor* managed = borrow_as_dlpack(columns);
  EXPECT_EQ(managed->dl_tensor.data, memory.data() + 1);
  EXPECT_THAT(std::span(managed->dl_tensor.strides, 2), ElementsAre(4, 1));
  managed->deleter(managed);
}

TEST(FromDLPack, LooksAtTheSameMemoryAndDeletesOnce) {
  Foreign foreign;
  {
    const Tensor tensor = from_dlpack(&foreign.managed);
    EXPECT_EQ(tensor.view().data<float>(), foreign.memory.data());
    EXPECT_EQ(tensor.view().describe(), "float32 [2, 3, 4] on cpu");
    EXPECT_EQ(foreign.deleted, 0);
  }
  EXPECT_EQ(foreign.deleted, 1);
}

TEST(FromDLPack, MovedTensorsDeleteOnce) {
  Foreign foreign;
  {
    Tensor first = from_dlpack(&foreign.managed);
    const Tensor second = std::move(first);
    EXPECT_EQ(second.view().numel(), 24);
  }
  EXPECT_EQ(foreign.deleted, 1);
}

TEST(FromDLPack, KeepsRowStridesAndOffsets) {
  Foreign foreign;
  foreign.shape = {2, 4};
  foreign.strides = {12, 1};
  foreign.managed.dl_tensor.shape = foreign.shape.data();
  foreign.managed.dl_tensor.strides = foreign.strides.data();
  foreign.managed.dl_tensor.ndim = 2;
  foreign.managed.dl_tensor.byte_offset = 16;
  const Tensor tensor = from_dlpack(&foreign.managed);
  EXPECT_EQ(tensor.view().data<float>(), foreign.memory.data() + 4);
  EXPECT_EQ(tensor.view().select(1).data<float>(), foreign.memory.data() + 16);
  EXPECT_FALSE(tensor.view().is_contiguous());
}

TEST(FromDLPack, NullStridesMeanRowMajor) {
  Foreign foreign;
  foreign.managed.dl_tensor.strides = nullptr;
  const Tensor tensor = from_dlpack(&foreign.managed);
  EXPECT_EQ(tensor.view().stride(0), 12);
}

TEST(FromDLPack, NoElementsAndNoMemoryStillDeletes) {
  Foreign foreign;
  foreign.shape[1] = 0;
  foreign.managed.dl_tensor.data = nullptr;
  EXPECT_EQ(from_dlpack(&foreign.managed).view().numel(), 0);
  EXPECT_EQ(foreign.deleted, 1);
}

TEST(FromDLPack, AMissingDeleterIsAllowed) {
  Foreign foreign;
  foreign.managed.deleter = nullptr;
  EXPECT_EQ(from_dlpack(&foreign.managed).view().numel(), 24);
}

struct RefusedCase {
  const char* name;
  void (*spoil)(Foreign&);
  ErrorKind kind;
};

class FromDLPackRefuses : public testing::TestWithParam<RefusedCase> {};

TEST_P(FromDLPackRefuses, AndLeavesTheTensorToItsOwner) {
  Foreign foreign;
  GetParam().spoil(foreign);
  try {
    from_dlpack(&foreign.managed);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), GetParam().kind) << error.what();
  }
  EXPECT_EQ(foreign.deleted, 0);
}

constexpr int64_t kHuge = int64_t{1} << 62;
INSTANTIATE_TEST_SUITE_P(
    All, FromDLPackRefuses,
    testing::ValuesIn<RefusedCase>({
        {"Complex",
         [](Foreign& f) {
           f.managed.dl_tensor.dtype = {5, 64, 1};
         },
         ErrorKind::kUnsupported},
        {"Lanes", [](Foreign& f) { f.managed.dl_tensor.dtype.lanes = 4; }, ErrorKind::kUnsupported},
        {"Device", [](Foreign& f) { f.managed.dl_tensor.device.device_type = 8; },
         ErrorKind::kUnsupported},
        {"Rank", [](Foreign& f) { f.managed.dl_tensor.ndim = 6; }, ErrorKind::kUnsupported},
        {"NegativeRank", [](Foreign& f) { f.managed.dl_tensor.ndim = -1; },
         ErrorKind::kUnsupported},
        {"LastStride", [](Foreign& f) { f.strides[2] = 2; }, ErrorKind::kUnsupported},
        {"NegativeSize", [](Foreign& f) { f.shape[0] = -2; }, ErrorKind::kInvalidArgument},
        {"Overflow", [](Foreign& f) { f.shape[0] = kHuge; }, ErrorKind::kInvalidArgument},
        {"NoData", [](Foreign& f) { f.managed.dl_tensor.data = nullptr; },
         ErrorKind::kInvalidArgument},
    }),
    [](const auto& info) { return std::string(info.param.name); });

TEST(DLPack, EveryPlainTypeGoesOutAndComesBack) {
  for (const DType dtype :
       {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat8E4M3, DType::kFloat8E5M2,
        DType::kInt8, DType::kUInt8, DType::kInt32, DType::kInt64, DType::kBool}) {
    Tensor tensor = Tensor::zeros(dtype, {3, 5});
    const void* memory = tensor.view().raw();
    const Tensor back = from_dlpack(to_dlpack(std::move(tensor)));
    EXPECT_EQ(back.view().dtype(), dtype);
    EXPECT_EQ(back.view().raw(), memory);
  }
}

// The layout that other languages rely on (x86-64 and AArch64).
static_assert(sizeof(DLTensor) == 48 && offsetof(DLTensor, shape) == 24 &&
              offsetof(DLTensor, byte_offset) == 40);
static_assert(sizeof(DLManagedTensor) == 64 && offsetof(DLManagedTensor, deleter) == 56);

}  // namespace
}  // namespace minisgl
