// The reference against values worked out by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "kernel/kernels.h"
#include "utils/arena.h"

namespace minisgl {
namespace {

TensorView view(std::vector<float>& values, std::initializer_list<int64_t> shape) {
  return TensorView(values.data(), DType::kFloat32, shape);
}
TensorView view(std::vector<int32_t>& values, std::initializer_list<int64_t> shape) {
  return TensorView(values.data(), DType::kInt32, shape);
}
RawMatrix raw(const std::vector<float>& values, int64_t rows) {
  return {DType::kFloat32, rows, static_cast<int64_t>(values.size()) / rows,
          reinterpret_cast<const std::byte*>(values.data())};
}

class ReferenceTest : public testing::Test {
 protected:
  std::unique_ptr<PackedMatrix> pack(const std::vector<float>& values, int64_t rows,
                                     DType dtype = DType::kFloat32) {
    const RawMatrix parts[] = {raw(values, rows)};
    return kernels_->pack(parts, dtype);
  }
  std::unique_ptr<Kernels> kernels_ = make_reference_kernels();
};

TEST_F(ReferenceTest, LinearMultipliesByTheTransposeAndAddsTheBias) {
  std::vector<float> x = {1, 2, 3, 0, -1, 1};
  std::vector<float> y(4);
  std::vector<float> bias = {10, 20};
  const auto w = pack({1, 0, 2, -1, 1, 0}, 2);
  kernels_->linear(view(y, {2, 2}), view(x, {2, 3}), *w, view(bias, {2}));
  EXPECT_EQ(y, (std::vector<float>{17, 21, 12, 19}));
}

TEST_F(ReferenceTest, PackPutsPartsBelowEachOtherAndUndoesInterleavedHeads) {
  const std::vector<float> a = {0, 2, 1, 3};  // rows of a head of 4: 0, 2 | 1, 3 in file order
  const std::vector<float> b = {7};
  RawMatrix parts[] = {raw(a, 4), raw(b, 1)};
  parts[0].interleaved_head_dim = 4;
  const auto w = kernels_->pack(parts, DType::kFloat32);
  std::vector<int32_t> ids = {0, 1, 2, 3, 4};
  std::vector<float> out(5);
  kernels_->embedding(view(out, {5, 1}), view(ids, {5}), *w);
  EXPECT_EQ(out, (std::vector<float>{0, 1, 2, 3, 7}));
}

TEST_F(ReferenceTest, PackRoundsPlainWeightsToTheDtype) {
  const auto w = pack({1.00390625f + 0.001f}, 1, DType::kBFloat16);
  std::vector<int32_t> ids = {0};
  std::vector<float> out(1);
  kernels_->embedding(view(out, {1, 1}), view(ids, {1}), *w);
  EXPECT_EQ(out[0], 1.0078125f);
}

TEST_F(ReferenceTest, RmsNormDividesByTheRootOfTheMeanSquare) {
  std::vector<float> x = {3, -4, 0, 0};
  std::vector<float> w = {1, 2, 1, 1};
  kernels_->rms_norm(view(x, {1, 4}), view(x, {1, 4}), view(w, {4}), 0.0f);
  EXPECT_FLOAT_EQ(x[0], 1.2f);
  EXPECT_FLOAT_EQ(x[1], -3.2f);
}

TEST_F(ReferenceTest, AddRmsNormKeepsTheSum) {
  std::vector<float> x = {1, 1};
  std::vector<float> addend = {2, -1};
  std::vector<float> y(2);
  std::vector<float> w = {1, 1};
  kernels_->add_rms_norm(view(y, {1, 2}), view(x, {1, 2}), view(addend, {1, 2}), view(w, {2}), 0);
  EXPECT_EQ(x, (std::vector<float>{3, 0}));
  EXPECT_FLOAT_EQ(y[0], std::sqrt(2.0f));
}

TEST_F(ReferenceTest, RopeTurnsPairsOfTheFirstRColumns) {
  // R = 2 of D = 3, position 1 turns by 90 degrees.
  std::vector<float> cos_sin = {1, 0, 0, 1};
  std::vector<float> q = {1, 2, 3};
  std::vector<float> k = {4, 5, 6};
  std::vector<int32_t> positions = {1};
  kernels_->rope(view(q, {1, 1, 3}), view(k, {1, 1, 3}), view(positions, {1}),
                 view(cos_sin, {2, 2}));
  EXPECT_EQ(q, (std::vector<float>{-2, 1, 3}));
  EXPECT_EQ(k, (std::vector<float>{-5, 4, 6}));
}

TEST_F(ReferenceTest, GatesBySiluAndGelu) {
  std::vector<float> gate_up = {0, 1, 5, 2};
  std::vector<float> y(2);
  kernels_->silu_mul(view(y, {1, 2}), view(gate_up, {1, 4}));
  EXPECT_EQ(y[0], 0);
  EXPECT_NEAR(y[1], 2 * 0.7310586f, 1e-6);
  kernels_->gelu_mul(view(y, {1, 2}), view(gate_up, {1, 4}));
  EXPECT_NEAR(y[1], 2 * 0.8411920f, 1e-6);
}

TEST_F(ReferenceTest, SoftcapSaturatesAtTheCap) {
  std::vector<float> x = {1000, -1000, 1};
  kernels_->softcap(view(x, {3}), 30);
  EXPECT_FLOAT_EQ(x[0], 30);
  EXPECT_FLOAT_EQ(x[1], -30);
  EXPECT_NEAR(x[2], 0.99963f, 1e-5);
}

TEST_F(ReferenceTest, ArgmaxTakesTheFirstOfEqualMaxima) {
  std::vector<float> logits = {1, 3, 3, 0, -1, -2, -1, -5};
  std::vector<int32_t> ids(2);
  kernels_->argmax(view(ids, {2}), view(logits, {2, 4}));
  EXPECT_EQ(ids, (std::vector<int32_t>{1, 0}));
}

TEST_F(ReferenceTest, AttentionSeesTheWindowAndTheSink) {
  // Keys give equal scores, so the output is the mean of the values seen; a sink of 0 adds one
  // to the denominator.
  std::vector<float> q = {0};
  std::vector<float> out(1);
  std::vector<float> lse(1);
  std::vector<float> pool_k = {9, 9, 9, 9};
  std::vector<float> pool_v = {1, 2, 4, 8};
  std::vector<int32_t> cu = {0, 1};
  std::vector<int32_t> lens = {3};
  std::vector<int32_t> pages = {3, 0, 2};
  std::vector<float> sinks = {0};
  PagedAttentionArgs args;
  args.out = view(out, {1, 1, 1});
  args.q = view(q, {1, 1, 1});
  args.k_pool = view(pool_k, {4, 1, 1});
  args.v_pool = view(pool_v, {4, 1, 1});
  args.cu_seqlens_q = view(cu, {2});
  args.cache_seqlens = view(lens, {1});
  args.page_table = view(pages, {1, 3});
  args.lse = view(lse, {1, 1});
  args.max_seqlen_q = 1;
  args.max_seqlen_k = 3;
  kernels_->paged_attention(args);
  EXPECT_FLOAT_EQ(out[0], 13.0f / 3.0f);
  EXPECT_FLOAT_EQ(lse[0], std::log(3.0f));
  args.window = 2;
  kernels_->paged_attention(args);
  EXPECT_FLOAT_EQ(out[0], 2.5f);
  args.sinks = view(sinks, {1});
  kernels_->paged_attention(args);
  EXPECT_FLOAT_EQ(out[0], 5.0f / 3.0f);
}

TEST_F(ReferenceTest, RoutesToTheLikeliestExperts) {
  std::vector<float> logits = {0, std::log(2.0f), 0, std::log(4.0f)};
  std::vector<int32_t> experts(3);
  std::vector<float> weights(3);
  kernels_->moe_route(view(experts, {1, 3}), view(weights, {1, 3}), view(logits, {1, 4}), false);
  EXPECT_EQ(experts, (std::vector<int32_t>{3, 1, 0}));
  EXPECT_FLOAT_EQ(weights[0], 0.5f);
  kernels_->moe_route(view(experts, {1, 3}), view(weights, {1, 3}), view(logits, {1, 4}), true);
  EXPECT_FLOAT_EQ(weights[0], 4.0f / 7.0f);
}

TEST_F(ReferenceTest, MoeWeighsTheExpertsThatWereChosen) {
  std::vector<std::unique_ptr<PackedMatrix>> gate_up;
  std::vector<std::unique_ptr<PackedMatrix>> down;
  for (const float scale : {1.0f, 10.0f}) {
    gate_up.push_back(pack({100, scale}, 2));  // silu(100) = 100
    down.push_back(pack({0.01f}, 1));
  }
  std::vector<float> x = {1};
  std::vector<float> y(1);
  std::vector<int32_t> experts = {1, 0};
  std::vector<float> weights = {0.5f, 0.25f};
  std::vector<std::byte> memory(4096);
  Arena arena(memory.data(), 4096);
  kernels_->moe_mlp(view(y, {1, 1}), view(x, {1, 1}), view(experts, {1, 2}), view(weights, {1, 2}),
                    gate_up, down, arena);
  EXPECT_FLOAT_EQ(y[0], 5.25f);
  EXPECT_EQ(arena.mark(), 0);
}

TEST_F(ReferenceTest, ShapesThatDoNotFitAreInternalErrors) {
  std::vector<float> x(6);
  std::vector<float> y(4);
  const auto w = pack({1, 2, 3, 4}, 2);
  EXPECT_THROW(kernels_->linear(view(y, {2, 2}), view(x, {2, 3}), *w, {}), Error);
  EXPECT_THROW(kernels_->linear(view(y, {1, 4}), view(x, {1, 2}), *w, {}), Error);
  std::vector<int32_t> ids = {2};
  EXPECT_THROW(kernels_->embedding(view(y, {1, 2}), view(ids, {1}), *w), Error);
  ids = {-1};
  EXPECT_THROW(kernels_->embedding(view(y, {1, 2}), view(ids, {1}), *w), Error);
}

}  // namespace
}  // namespace minisgl
