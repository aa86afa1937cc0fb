// Random inputs for kernels. Each run has a fresh seed, which a failure prints; MINISGL_TEST_SEED
// repeats one.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernel/blocks.h"
#include "kernel/kernels.h"
#include "tensor/half.h"
#include "utils/thread_pool.h"

namespace minisgl::test {

inline uint64_t test_seed() {
  const char* fixed = std::getenv("MINISGL_TEST_SEED");
  if (fixed != nullptr && *fixed != '\0') return std::strtoull(fixed, nullptr, 10);
  static const uint64_t seed = std::random_device{}();
  return seed;
}
// Say it in the failures of this scope.
#define TRACE_SEED() \
  SCOPED_TRACE("MINISGL_TEST_SEED=" + std::to_string(::minisgl::test::test_seed()))

class Random {
 public:
  Random() : engine_(test_seed()) {}
  int64_t integer(int64_t low, int64_t high) {  // both included
    return std::uniform_int_distribution<int64_t>(low, high)(engine_);
  }
  bool coin() { return integer(0, 1) == 1; }
  float normal() { return std::normal_distribution<float>()(engine_); }
  std::vector<float> normals(int64_t n, float scale = 1.0f) {
    std::vector<float> values(static_cast<size_t>(n));
    for (float& value : values) value = scale * normal();
    return values;
  }

 private:
  std::mt19937_64 engine_;
};

// A float32 view with rows that may lie apart, over its own memory, with guards around each row.
class Strided {
 public:
  Strided(std::initializer_list<int64_t> shape, int64_t gap) : gap_(gap) {
    std::vector<int64_t> dims(shape);
    const int64_t inner = dims.back();
    int64_t rows = 1;
    for (size_t i = 0; i + 1 < dims.size(); ++i) rows *= dims[i];
    values_.assign(static_cast<size_t>(rows * (inner + gap) + 1), kGuard);
    dims.back() = inner + gap;
    view_ = TensorView(values_.data(), DType::kFloat32, dims).columns(0, inner);
  }
  Strided(const Strided& other) : gap_(other.gap_), values_(other.values_) {
    view_ = rebased(other.view_);
  }
  Strided& operator=(const Strided&) = delete;
  void fill(Random& random, float scale = 1.0f) {
    for_each([&](float& value) { value = scale * random.normal(); });
  }
  TensorView view() const { return view_; }
  std::vector<float> dense() {
    std::vector<float> out;
    for_each([&](float& value) { out.push_back(value); });
    return out;
  }
  bool guards_are_intact() const {
    const int64_t inner = view_.dim(-1);
    for (size_t i = 0; i < values_.size(); ++i) {
      if (static_cast<int64_t>(i) % (inner + gap_) >= inner && values_[i] != kGuard) return false;
    }
    return values_.back() == kGuard;
  }

 private:
  static constexpr float kGuard = 12345.0f;
  template <class Use>
  void for_each(Use use) {
    const int64_t inner = view_.dim(-1);
    if (view_.numel() == 0) return;
    for (int64_t r = 0; r < view_.numel() / inner; ++r) {
      for (int64_t i = 0; i < inner; ++i) use(values_[static_cast<size_t>(r * (inner + gap_) + i)]);
    }
  }
  // The same columns of this object's memory.
  TensorView rebased(const TensorView& view) {
    std::vector<int64_t> dims(view.shape().begin(), view.shape().end());
    dims.back() += gap_;
    return TensorView(values_.data(), DType::kFloat32, dims).columns(0, view.dim(-1));
  }
  int64_t gap_;
  std::vector<float> values_;
  TensorView view_;
};

// A matrix in any dtype with weights of about unit size.
class RandomMatrix {
 public:
  RandomMatrix(Random& random, DType dtype, int64_t rows, int64_t cols) {
    matrix_ = {dtype, rows, cols, nullptr};
    bytes_.resize(static_cast<size_t>(rows * matrix_.row_bytes()));
    fill(random, dtype);
    matrix_.data = bytes_.data();
  }
  RandomMatrix(RandomMatrix&&) = default;
  const RawMatrix& raw() const { return matrix_; }

 private:
  void fill(Random& random, DType dtype) {
    for (std::byte& byte : bytes_) byte = static_cast<std::byte>(random.integer(0, 255));
    switch (dtype) {
      case DType::kFloat32:
        return each<float>([&](float& x) { x = random.normal(); });
      case DType::kFloat16:
        return each<uint16_t>([&](uint16_t& x) { x = float_to_half(random.normal()); });
      case DType::kBFloat16:
        return each<uint16_t>([&](uint16_t& x) { x = float_to_bfloat16(random.normal()); });
      case DType::kQ4_0:
        return scale<blocks::BlockQ4_0>(random);
      case DType::kQ4_1:
        return scale<blocks::BlockQ4_1>(random);
      case DType::kQ5_0:
        return scale<blocks::BlockQ5_0>(random);
      case DType::kQ5_1:
        return scale<blocks::BlockQ5_1>(random);
      case DType::kQ8_0:
        return scale<blocks::BlockQ8_0>(random);
      case DType::kQ2_K:
        return scale<blocks::BlockQ2_K>(random);
      case DType::kQ3_K:
        return scale<blocks::BlockQ3_K>(random);
      case DType::kQ4_K:
        return scale<blocks::BlockQ4_K>(random);
      case DType::kQ5_K:
        return scale<blocks::BlockQ5_K>(random);
      case DType::kQ6_K:
        return scale<blocks::BlockQ6_K>(random);
      case DType::kIQ4_NL:
        return scale<blocks::BlockIQ4_NL>(random);
      case DType::kIQ4_XS:
        return scale<blocks::BlockIQ4_XS>(random);
      case DType::kMXFP4:
        return each<blocks::BlockMXFP4>([&](blocks::BlockMXFP4& block) {
          block.e = static_cast<uint8_t>(random.integer(115, 130));
        });
      default:
        FAIL() << "no random matrices of " << dtype_name(dtype);
    }
  }
  template <class T, class Change>
  void each(Change change) {
    for (size_t i = 0; i + sizeof(T) <= bytes_.size(); i += sizeof(T)) {
      T value;
      std::memcpy(&value, bytes_.data() + i, sizeof value);
      change(value);
      std::memcpy(bytes_.data() + i, &value, sizeof value);
    }
  }
  // Random bits make wild scales, even NaN: put tame ones in.
  template <class Block>
  void scale(Random& random) {
    each<Block>([&](Block& block) {
      block.d = float_to_half(0.05f * random.normal());
      if constexpr (requires { block.m; }) block.m = float_to_half(0.3f * random.normal());
      if constexpr (requires { block.dmin; }) block.dmin = float_to_half(0.02f * random.normal());
    });
  }

  RawMatrix matrix_;
  std::vector<std::byte> bytes_;
};

constexpr DType kWeightDTypes[] = {
    DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kQ4_0,  DType::kQ4_1, DType::kQ5_0,
    DType::kQ5_1,    DType::kQ8_0,    DType::kQ2_K,     DType::kQ3_K,  DType::kQ4_K, DType::kQ5_K,
    DType::kQ6_K,    DType::kIQ4_NL,  DType::kIQ4_XS,   DType::kMXFP4,
};

inline TensorView view(std::vector<float>& values, std::initializer_list<int64_t> shape) {
  return TensorView(values.data(), DType::kFloat32, shape);
}
inline TensorView view(std::vector<int32_t>& values, std::initializer_list<int64_t> shape) {
  return TensorView(values.data(), DType::kInt32, shape);
}

// |got - expected| <= tolerance * max(1, |expected|), everywhere.
inline void expect_near(const std::vector<float>& got, const std::vector<float>& expected,
                        float tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], expected[i], tolerance * std::max(1.0f, std::abs(expected[i])))
        << "at index " << i;
  }
}
inline void expect_same_bits(const std::vector<float>& got, const std::vector<float>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(expected[i]))
        << "at index " << i << ": " << got[i] << " and " << expected[i];
  }
}

// One instruction set of this machine, with two threads; and the reference.
class IsaTest : public ::testing::TestWithParam<std::string> {
 protected:
  Random random_;
  ThreadPool threads_{2};
  std::unique_ptr<Kernels> cpu_ = make_cpu_kernels(threads_, GetParam());
  std::unique_ptr<Kernels> reference_ = make_reference_kernels();
};

inline std::string isa_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
#define INSTANTIATE_FOR_ISAS(suite)                                                               \
  INSTANTIATE_TEST_SUITE_P(Isa, suite,                                                            \
                           ::testing::ValuesIn(available_isas().begin(), available_isas().end()), \
                           ::minisgl::test::isa_name)

}  // namespace minisgl::test
