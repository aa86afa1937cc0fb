// The CPU's row kernels against the reference, per instruction set.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "random_data.h"

namespace minisgl {
namespace {

using namespace test;

class RowsTest : public IsaTest {
 protected:
  // Lengths around the vectors' and a few large ones.
  int64_t length() { return random_.coin() ? random_.integer(1, 70) : random_.integer(71, 2000); }
  int64_t rows() { return random_.coin() ? random_.integer(0, 3) : random_.integer(4, 60); }
  static constexpr int kRounds = 12;
};

TEST_P(RowsTest, RmsNormEqualsTheReference) {
  TRACE_SEED();
  for (int round = 0; round < kRounds; ++round) {
    const int64_t n = length();
    const std::initializer_list<int64_t> shape = {rows(), random_.integer(1, 3), n};
    Strided x(shape, random_.integer(0, 4));
    x.fill(random_, 3.0f);
    Strided y(shape, 1);
    Strided expected(shape, 0);
    std::vector<float> w = random_.normals(n);
    cpu_->rms_norm(y.view(), x.view(), view(w, {n}), 1e-5f);
    reference_->rms_norm(expected.view(), x.view(), view(w, {n}), 1e-5f);
    expect_near(y.dense(), expected.dense(), 1e-5f);
    EXPECT_TRUE(y.guards_are_intact());
    cpu_->rms_norm(x.view(), x.view(), view(w, {n}), 1e-5f);  // in place
    expect_same_bits(x.dense(), y.dense());
    EXPECT_TRUE(x.guards_are_intact());
  }
}

TEST_P(RowsTest, AddRmsNormEqualsAddThenRmsNorm) {
  TRACE_SEED();
  for (int round = 0; round < kRounds; ++round) {
    const int64_t n = length();
    const int64_t t = rows();
    Strided x({t, n}, 1), addend({t, n}, 2), y({t, n}, 0), x2({t, n}, 0), y2({t, n}, 0);
    x.fill(random_);
    addend.fill(random_);
    const auto values = x.dense();
    std::copy(values.begin(), values.end(), x2.view().data<float>());
    std::vector<float> w = random_.normals(n);
    cpu_->add_rms_norm(y.view(), x.view(), addend.view(), view(w, {n}), 1e-6f);
    cpu_->add(x2.view(), addend.view());
    cpu_->rms_norm(y2.view(), x2.view(), view(w, {n}), 1e-6f);
    expect_same_bits(x.dense(), x2.dense());
    expect_same_bits(y.dense(), y2.dense());
    EXPECT_TRUE(x.guards_are_intact());
    const auto sums = x.dense();
    const auto more = addend.dense();
    for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(sums[i], values[i] + more[i]);
  }
}

TEST_P(RowsTest, RopeEqualsTheReference) {
  TRACE_SEED();
  for (int round = 0; round < kRounds; ++round) {
    const int64_t half = random_.integer(1, 70);
    const int64_t dim = 2 * half + random_.integer(0, 5);
    const int64_t t = rows();
    const int64_t max_position = 50;
    Strided q({t, random_.integer(1, 5), dim}, 0), k({t, random_.integer(1, 3), dim}, 3);
    q.fill(random_);
    k.fill(random_);
    std::vector<float> cos_sin = random_.normals(max_position * 2 * half);
    std::vector<int32_t> positions(static_cast<size_t>(t));
    for (int32_t& p : positions) p = static_cast<int32_t>(random_.integer(0, max_position - 1));
    const auto rotate = [&](Kernels& kernels, Strided& heads, Strided& others) {
      kernels.rope(heads.view(), others.view(), view(positions, {t}),
                   view(cos_sin, {max_position, 2 * half}));
    };
    Strided q2 = q, k2 = k;
    rotate(*cpu_, q, k);
    rotate(*reference_, q2, k2);
    expect_near(q.dense(), q2.dense(), 1e-5f);
    expect_near(k.dense(), k2.dense(), 1e-5f);
    EXPECT_TRUE(k.guards_are_intact());
  }
}

TEST_P(RowsTest, GatesEqualTheReference) {
  TRACE_SEED();
  for (int round = 0; round < kRounds; ++round) {
    const int64_t n = length();
    const int64_t t = rows();
    Strided gate_up({t, 2 * n}, 1), y({t, n}, 1), expected({t, n}, 0);
    gate_up.fill(random_, round < 4 ? 30.0f : 2.0f);
    cpu_->silu_mul(y.view(), gate_up.view());
    reference_->silu_mul(expected.view(), gate_up.view());
    expect_near(y.dense(), expected.dense(), 2e-6f);
    cpu_->gelu_mul(y.view(), gate_up.view());
    reference_->gelu_mul(expected.view(), gate_up.view());
    // The reference itself loses digits where 1 + tanh cancels, in proportion to gate and up.
    expect_near(y.dense(), expected.dense(), round < 4 ? 3e-5f : 3e-6f);
    EXPECT_TRUE(y.guards_are_intact());
  }
}

TEST_P(RowsTest, SoftcapEqualsTheReferenceRelativeToTheValue) {
  TRACE_SEED();
  for (const float scale : {1e-4f, 0.1f, 10.0f, 1000.0f}) {
    const int64_t n = length();
    Strided x({3, n}, 2);
    x.fill(random_, scale);
    Strided expected = x;
    cpu_->softcap(x.view(), 30.0f);
    reference_->softcap(expected.view(), 30.0f);
    const auto got = x.dense();
    const auto want = expected.dense();
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(got[i], want[i], 1e-6f * std::abs(want[i])) << "scale " << scale;
    }
  }
}

TEST_P(RowsTest, StoreKvConvertsToThePoolsDtype) {
  TRACE_SEED();
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    const int64_t locations = 40;
    const int64_t heads = random_.integer(1, 4);
    const int64_t dim = random_.integer(1, 130);
    const int64_t t = random_.integer(0, locations);
    Tensor pool = Tensor::zeros(dtype, {locations, heads, dim});
    Tensor expected = Tensor::zeros(dtype, {locations, heads, dim});
    Strided rows({t, heads, dim}, 2);
    rows.fill(random_, 100.0f);
    if (t > 0) rows.view().data<float>()[0] = 1e30f;  // beyond a half
    std::vector<int32_t> loc(static_cast<size_t>(locations));
    for (size_t i = 0; i < loc.size(); ++i) loc[i] = static_cast<int32_t>((i * 7) % loc.size());
    loc.resize(static_cast<size_t>(t));
    cpu_->store_kv(pool, rows.view(), view(loc, {t}));
    reference_->store_kv(expected, rows.view(), view(loc, {t}));
    EXPECT_EQ(std::memcmp(pool.view().raw(), expected.view().raw(),
                          static_cast<size_t>(pool.view().bytes())),
              0)
        << dtype_name(dtype);
  }
}

TEST_P(RowsTest, StoreKvTakesTheLastOfEqualLocations) {
  Tensor pool = Tensor::zeros(DType::kFloat32, {2, 64, 64});
  std::vector<float> rows(64 * 64 * 64);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i / (64 * 64));
  std::vector<int32_t> loc(64, 1);
  cpu_->store_kv(pool, view(rows, {64, 64, 64}), view(loc, {64}));
  for (int64_t i = 0; i < 64 * 64; ++i) {
    ASSERT_EQ(pool.view().data<float>()[64 * 64 + i], 63.0f);
  }
}

TEST_P(RowsTest, GatherRowsCopies) {
  TRACE_SEED();
  const int64_t n = length();
  Strided x({20, n}, 3), out({31, n}, 1), expected({31, n}, 0);
  x.fill(random_);
  std::vector<int32_t> ids(31);
  for (int32_t& id : ids) id = static_cast<int32_t>(random_.integer(0, 19));
  cpu_->gather_rows(out.view(), x.view(), view(ids, {31}));
  reference_->gather_rows(expected.view(), x.view(), view(ids, {31}));
  expect_same_bits(out.dense(), expected.dense());
  EXPECT_TRUE(out.guards_are_intact());
}

TEST_P(RowsTest, ArgmaxTakesTheFirstOfEqualMaxima) {
  TRACE_SEED();
  for (int round = 0; round < kRounds; ++round) {
    const int64_t n = length();
    const int64_t bs = rows();
    Strided logits({bs, n}, 1);
    logits.fill(random_);
    for (int64_t i = 0; i < bs * 3; ++i) {  // ties at the top
      logits.view().data<float>()[i % bs * logits.view().stride(0) + random_.integer(0, n - 1)] = 9;
    }
    std::vector<int32_t> ids(static_cast<size_t>(bs)), expected(ids);
    cpu_->argmax(view(ids, {bs}), logits.view());
    reference_->argmax(view(expected, {bs}), logits.view());
    EXPECT_EQ(ids, expected);
  }
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> masked(33, -kInfinity);
  std::vector<int32_t> id(1, -1);
  cpu_->argmax(view(id, {1}), view(masked, {1, 33}));
  EXPECT_EQ(id[0], 0);
}

TEST_P(RowsTest, IndicesOutsideAreInternalErrors) {
  std::vector<float> x(8), out(8);
  std::vector<int32_t> bad = {2};
  EXPECT_THROW(cpu_->gather_rows(view(out, {1, 4}), view(x, {2, 4}), view(bad, {1})), Error);
  EXPECT_THROW(cpu_->store_kv(view(x, {2, 1, 4}), view(out, {1, 1, 4}), view(bad, {1})), Error);
  bad = {-1};
  EXPECT_THROW(
      cpu_->rope(view(x, {1, 1, 4}), view(out, {1, 1, 4}), view(bad, {1}), view(x, {2, 4})), Error);
}

TEST_P(RowsTest, RoutesAsTheReference) {
  TRACE_SEED();
  for (int round = 0; round < kRounds; ++round) {
    const int64_t experts = random_.integer(1, 130);
    const int64_t top_k = random_.integer(1, std::min<int64_t>(8, experts));
    const int64_t t = rows();
    const bool normalize = random_.coin();
    Strided logits({t, experts}, 1);
    logits.fill(random_);
    std::vector<int32_t> ids(static_cast<size_t>(t * top_k)), expected_ids(ids);
    std::vector<float> weights(ids.size()), expected(ids.size());
    cpu_->moe_route(view(ids, {t, top_k}), view(weights, {t, top_k}), logits.view(), normalize);
    reference_->moe_route(view(expected_ids, {t, top_k}), view(expected, {t, top_k}), logits.view(),
                          normalize);
    EXPECT_EQ(ids, expected_ids);
    expect_near(weights, expected, 1e-6f);
  }
}

INSTANTIATE_FOR_ISAS(RowsTest);

}  // namespace
}  // namespace minisgl
