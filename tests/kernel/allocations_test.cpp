// A step's operations take no memory from the heap once their scratch has grown.
#include <gtest/gtest.h>

#include <numeric>

#include "attention/counted_allocations.h"
#include "random_data.h"
#include "utils/arena.h"

namespace minisgl {
namespace {

using namespace test;

constexpr int64_t kTokens = 40;
constexpr int64_t kHidden = 128;
constexpr int64_t kHeads = 2;
constexpr int64_t kDim = 64;
constexpr int64_t kExperts = 4;

class AllocationsTest : public IsaTest {};

TEST_P(AllocationsTest, ASecondStepAllocatesNothing) {
  const RandomMatrix weights(random_, DType::kQ4_1, 3 * kHidden, kHidden);
  const RandomMatrix square(random_, DType::kQ8_0, kHidden, kHidden);
  const auto w = cpu_->pack({&weights.raw(), 1}, DType::kFloat32);
  std::vector<std::unique_ptr<PackedMatrix>> gate_up, down;
  const RandomMatrix wide(random_, DType::kBFloat16, 2 * kHidden, kHidden);
  for (int64_t e = 0; e < kExperts; ++e) {
    gate_up.push_back(cpu_->pack({&wide.raw(), 1}, DType::kFloat32));
    down.push_back(cpu_->pack({&square.raw(), 1}, DType::kFloat32));
  }
  std::vector<float> x = random_.normals(kTokens * kHidden), addend = x, y(x), norm(kHidden, 1.0f);
  std::vector<float> qkv(kTokens * 3 * kHidden), angles(100 * kDim, 0.5f), routes(kTokens * 2);
  std::vector<float> logits = random_.normals(kTokens * kExperts);
  std::vector<int32_t> ids(kTokens), best(kTokens), experts(kTokens * 2);
  std::iota(ids.begin(), ids.end(), 0);
  std::vector<int32_t> cu = {0, kTokens};
  std::vector<int32_t> lens = {kTokens};
  const Tensor k_pool = Tensor::zeros(DType::kBFloat16, {kTokens, kHeads, kDim});
  const Tensor v_pool = Tensor::zeros(DType::kBFloat16, {kTokens, kHeads, kDim});
  std::vector<std::byte> memory(1 << 22);
  Arena arena(memory.data(), static_cast<int64_t>(memory.size()));

  const auto step = [&] {
    const TensorView rows = view(x, {kTokens, kHidden});
    const TensorView out = view(y, {kTokens, kHidden});
    const TensorView all = view(qkv, {kTokens, 3 * kHidden});
    const TensorView tokens = view(ids, {kTokens});
    cpu_->embedding(rows, tokens, *w);
    cpu_->add_rms_norm(out, rows, view(addend, {kTokens, kHidden}), view(norm, {kHidden}), 1e-5f);
    cpu_->linear(all, out, *w, {});
    cpu_->linear(all.slice(0, 1), out.slice(0, 1), *w, {});
    const TensorView q = all.columns(0, kHidden).split_heads(kHeads, kDim);
    const TensorView k = all.columns(kHidden, kHidden).split_heads(kHeads, kDim);
    cpu_->rope(q, k, tokens, view(angles, {100, kDim}));
    cpu_->store_kv(k_pool, k, tokens);
    cpu_->store_kv(v_pool, k, tokens);
    PagedAttentionArgs args;
    args.q = q;
    args.out = out.split_heads(kHeads, kDim);
    args.k_pool = k_pool;
    args.v_pool = v_pool;
    args.cu_seqlens_q = view(cu, {2});
    args.cache_seqlens = view(lens, {1});
    args.page_table = view(ids, {1, kTokens});
    args.max_seqlen_q = args.max_seqlen_k = kTokens;
    cpu_->paged_attention(args);
    cpu_->moe_route(view(experts, {kTokens, 2}), view(routes, {kTokens, 2}),
                    view(logits, {kTokens, kExperts}), true);
    cpu_->moe_mlp(out, rows, view(experts, {kTokens, 2}), view(routes, {kTokens, 2}), gate_up, down,
                  arena);
    cpu_->argmax(view(best, {kTokens}), out);
  };
  step();
  const int64_t before = minisgl::testing::num_allocations();
  step();
  EXPECT_EQ(minisgl::testing::num_allocations(), before);
}

INSTANTIATE_FOR_ISAS(AllocationsTest);

}  // namespace
}  // namespace minisgl
