// linear(), embedding() and pack() of the CPU's kernels, per instruction set and weight format.
#include <gtest/gtest.h>

#include <cmath>

#include "random_data.h"

namespace minisgl {
namespace {

using namespace test;

class LinearTest : public IsaTest {
 protected:
  int64_t random_cols(DType dtype) {
    if (block_size(dtype) == 1) return random_.integer(1, 600);
    return block_size(dtype) * random_.integer(1, block_size(dtype) == 32 ? 20 : 3);
  }
  std::vector<float> multiply(Kernels& kernels, const PackedMatrix& w, TensorView x,
                              TensorView bias) {
    Strided y({x.dim(0), w.rows()}, 3);
    kernels.linear(y.view(), x, w, bias);
    EXPECT_TRUE(y.guards_are_intact());
    return y.dense();
  }
  // W as float32, row by row.
  std::vector<float> weights(Kernels& kernels, const PackedMatrix& w) {
    std::vector<int32_t> ids(static_cast<size_t>(w.rows()));
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i);
    std::vector<float> out(static_cast<size_t>(w.rows() * w.cols()));
    kernels.embedding(view(out, {w.rows(), w.cols()}), view(ids, {w.rows()}), w);
    return out;
  }
};

// Every product in double, with the sum of magnitudes that bounds a float32 sum's error.
void expect_products(const std::vector<float>& y, Strided& x, const std::vector<float>& w,
                     int64_t rows, const std::vector<float>& bias) {
  const std::vector<float> in = x.dense();
  const int64_t cols = static_cast<int64_t>(w.size()) / rows;
  for (int64_t t = 0; t < x.view().dim(0); ++t) {
    for (int64_t n = 0; n < rows; ++n) {
      double sum = bias.empty() ? 0.0 : bias[static_cast<size_t>(n)];
      double magnitude = std::abs(sum);
      for (int64_t k = 0; k < cols; ++k) {
        const double product = static_cast<double>(in[static_cast<size_t>(t * cols + k)]) *
                               w[static_cast<size_t>(n * cols + k)];
        sum += product;
        magnitude += std::abs(product);
      }
      ASSERT_NEAR(y[static_cast<size_t>(t * rows + n)], sum, 2e-6 * magnitude)
          << "row " << t << ", column " << n << ", K " << cols;
    }
  }
}

TEST_P(LinearTest, EqualsTheSumsOfExactWeightsInEveryFormat) {
  TRACE_SEED();
  for (const DType dtype : kWeightDTypes) {
    for (const int64_t rows :
         {int64_t{0}, int64_t{1}, int64_t{2}, random_.integer(3, 12), random_.integer(13, 40)}) {
      const int64_t n = random_.integer(1, 150);
      const RandomMatrix raw(random_, dtype, n, random_cols(dtype));
      SCOPED_TRACE(std::string(dtype_name(dtype)) + " M=" + std::to_string(rows) +
                   " N=" + std::to_string(n) + " K=" + std::to_string(raw.raw().cols));
      const auto packed = cpu_->pack({&raw.raw(), 1}, DType::kFloat32);
      const auto truth = reference_->pack({&raw.raw(), 1}, DType::kFloat32);
      Strided x({rows, raw.raw().cols}, random_.integer(0, 5));
      x.fill(random_);
      std::vector<float> bias;
      if (random_.coin()) bias = random_.normals(n);
      const auto y =
          multiply(*cpu_, *packed, x.view(), bias.empty() ? TensorView() : view(bias, {n}));
      expect_products(y, x, weights(*reference_, *truth), n, bias);
    }
  }
}

TEST_P(LinearTest, GivesTheSameBitsForOneRowAndForMany) {
  TRACE_SEED();
  for (const DType dtype : kWeightDTypes) {
    const int64_t n = random_.integer(1, 200);
    const int64_t rows = random_.integer(2, 40);
    const RandomMatrix raw(random_, dtype, n, random_cols(dtype));
    SCOPED_TRACE(std::string(dtype_name(dtype)) + " M=" + std::to_string(rows) +
                 " N=" + std::to_string(n) + " K=" + std::to_string(raw.raw().cols));
    const auto packed = cpu_->pack({&raw.raw(), 1}, DType::kFloat32);
    Strided x({rows, raw.raw().cols}, 0);
    x.fill(random_);
    std::vector<float> bias = random_.normals(n);
    const auto together = multiply(*cpu_, *packed, x.view(), view(bias, {n}));
    std::vector<float> apart;
    for (int64_t t = 0; t < rows; ++t) {
      const auto y = multiply(*cpu_, *packed, x.view().slice(t, 1), view(bias, {n}));
      apart.insert(apart.end(), y.begin(), y.end());
    }
    expect_same_bits(together, apart);
  }
}

TEST_P(LinearTest, GivesTheSameBitsAtAnyThreadCount) {
  TRACE_SEED();
  for (const int64_t rows : {1, 7, 900}) {
    const int64_t n = random_.integer(100, 300);
    const RandomMatrix raw(random_, DType::kQ4_1, n, 32 * random_.integer(1, 20));
    Strided x({rows, raw.raw().cols}, 0);
    x.fill(random_);
    std::vector<float> expected;
    for (const int num_threads : {1, 2, 3}) {
      ThreadPool threads(num_threads);
      const auto kernels = make_cpu_kernels(threads, GetParam());
      const auto packed = kernels->pack({&raw.raw(), 1}, DType::kFloat32);
      const auto y = multiply(*kernels, *packed, x.view(), {});
      if (num_threads == 1) expected = y;
      expect_same_bits(y, expected);
    }
  }
}

TEST_P(LinearTest, KeepsWeightsExactlyAndRoundsPlainOnesToTheDtype) {
  TRACE_SEED();
  for (const DType source : kWeightDTypes) {
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
      SCOPED_TRACE(std::string(dtype_name(source)) + " as " + std::string(dtype_name(dtype)));
      const RandomMatrix raw(random_, source, random_.integer(1, 70), random_cols(source));
      const auto packed = cpu_->pack({&raw.raw(), 1}, dtype);
      const auto truth = reference_->pack({&raw.raw(), 1}, dtype);
      EXPECT_EQ(weights(*cpu_, *packed), weights(*reference_, *truth));
    }
  }
}

TEST_P(LinearTest, TakesPartsOfDifferentFormatsAndInterleavedHeads) {
  TRACE_SEED();
  const int64_t cols = 256 * random_.integer(1, 2);
  const int64_t head_dim = 2 * random_.integer(1, 20);
  std::vector<RandomMatrix> parts;
  parts.emplace_back(random_, DType::kQ4_K, 2 * head_dim, cols);
  parts.emplace_back(random_, DType::kQ4_K, head_dim, cols);
  parts.emplace_back(random_, DType::kQ6_K, random_.integer(1, 50), cols);
  parts.emplace_back(random_, DType::kFloat32, random_.integer(1, 50), cols);
  std::vector<RawMatrix> raws;
  for (const RandomMatrix& part : parts) raws.push_back(part.raw());
  raws[0].interleaved_head_dim = raws[1].interleaved_head_dim = head_dim;

  const auto packed = cpu_->pack(raws, DType::kFloat32);
  const auto truth = reference_->pack(raws, DType::kFloat32);
  EXPECT_EQ(packed->format(), "q4_k+q6_k+float32");
  EXPECT_EQ(packed->format(), truth->format());
  const auto w = weights(*reference_, *truth);
  EXPECT_EQ(weights(*cpu_, *packed), w);
  for (const int64_t rows : {1, 5}) {
    Strided x({rows, cols}, 0);
    x.fill(random_);
    std::vector<float> bias = random_.normals(packed->rows());
    const auto y = multiply(*cpu_, *packed, x.view(), view(bias, {packed->rows()}));
    expect_products(y, x, w, packed->rows(), bias);
  }
}

TEST_P(LinearTest, QuantisedWeightsStayQuantised) {
  TRACE_SEED();
  for (const DType dtype : kWeightDTypes) {
    if (!is_block_format(dtype)) continue;
    const RandomMatrix raw(random_, dtype, 64, 512);
    const auto packed = cpu_->pack({&raw.raw(), 1}, DType::kFloat32);
    EXPECT_LE(packed->bytes(), 64 * 512 * 9 / 8) << dtype_name(dtype);
  }
}

TEST_P(LinearTest, RefusesWeightsThatAreNoFloats) {
  const std::vector<int32_t> values(4);
  const RawMatrix raw = {DType::kInt32, 2, 2, reinterpret_cast<const std::byte*>(values.data())};
  EXPECT_THROW(cpu_->pack({&raw, 1}, DType::kFloat32), Error);
}

INSTANTIATE_FOR_ISAS(LinearTest);

TEST(CpuKernels, NamesTheInstructionSetsOfThisMachine) {
  ThreadPool threads(1);
  ASSERT_FALSE(available_isas().empty());
  for (const std::string& isa : available_isas()) {
    EXPECT_EQ(make_cpu_kernels(threads, isa)->description(), "cpu " + isa + ", 1 thread");
  }
  try {
    make_cpu_kernels(threads, "avx9000");
    FAIL() << "an unknown instruction set was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find(available_isas().back()), std::string::npos);
  }
}

TEST(CpuKernels, ObeysTheEnvironmentUnlessToldOtherwise) {
  ThreadPool threads(2);
  const std::string& last = available_isas().back();
  const char* before = std::getenv("MINISGL_ISA");
  const std::string saved = before == nullptr ? "" : before;
  setenv("MINISGL_ISA", last.c_str(), 1);
  EXPECT_EQ(make_cpu_kernels(threads)->description(), "cpu " + last + ", 2 threads");
  EXPECT_EQ(make_cpu_kernels(threads, available_isas().front())->description(),
            "cpu " + available_isas().front() + ", 2 threads");
  setenv("MINISGL_ISA", saved.c_str(), 1);
}

}  // namespace
}  // namespace minisgl
