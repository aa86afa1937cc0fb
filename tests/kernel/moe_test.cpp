// moe_mlp() of the CPU's kernels, per instruction set.
#include <gtest/gtest.h>

#include <algorithm>

#include "random_data.h"
#include "utils/arena.h"

namespace minisgl {
namespace {

using namespace test;

class MoeTest : public IsaTest {
 protected:
  struct Experts {
    std::vector<std::unique_ptr<PackedMatrix>> gate_up, down;
  };
  Experts pack(Kernels& kernels, const std::vector<RandomMatrix>& gate_up,
               const std::vector<RandomMatrix>& down) {
    Experts experts;
    for (const RandomMatrix& m : gate_up) {
      experts.gate_up.push_back(kernels.pack({&m.raw(), 1}, DType::kFloat32));
    }
    for (const RandomMatrix& m : down) {
      experts.down.push_back(kernels.pack({&m.raw(), 1}, DType::kFloat32));
    }
    return experts;
  }
  std::vector<float> run(Kernels& kernels, const Experts& experts, TensorView x,
                         std::vector<int32_t> ids, std::vector<float> weights) {
    const int64_t top_k = static_cast<int64_t>(ids.size()) / std::max<int64_t>(1, x.dim(0));
    std::vector<std::byte> memory(1 << 22);
    Arena arena(memory.data(), static_cast<int64_t>(memory.size()));
    Strided y({x.dim(0), x.dim(1)}, 2);
    kernels.moe_mlp(y.view(), x, view(ids, {x.dim(0), top_k}), view(weights, {x.dim(0), top_k}),
                    experts.gate_up, experts.down, arena);
    EXPECT_EQ(arena.mark(), 0);
    EXPECT_TRUE(y.guards_are_intact());
    return y.dense();
  }
};

TEST_P(MoeTest, EqualsTheReferenceAndItsOwnRowsAlone) {
  TRACE_SEED();
  const int64_t hidden = 64;
  const int64_t intermediate = 96;
  const int64_t num_experts = 6;
  const int64_t top_k = 3;
  const int64_t tokens = 21;
  std::vector<RandomMatrix> gate_up, down;
  for (int64_t e = 0; e < num_experts; ++e) {
    gate_up.emplace_back(random_, DType::kMXFP4, 2 * intermediate, hidden);
    down.emplace_back(random_, DType::kQ8_0, hidden, intermediate);
  }
  const Experts fast = pack(*cpu_, gate_up, down);
  const Experts truth = pack(*reference_, gate_up, down);
  Strided x({tokens, hidden}, 1);
  x.fill(random_, 0.05f);
  std::vector<int32_t> ids;
  std::vector<float> weights;
  for (int64_t t = 0; t < tokens; ++t) {
    const auto first = static_cast<int32_t>(random_.integer(0, num_experts - 2));
    for (int32_t i = 0; i < top_k; ++i) {
      ids.push_back(static_cast<int32_t>((first + 2 * i) % (num_experts - 1)));  // one stays idle
      weights.push_back(random_.normal());
    }
  }
  const auto y = run(*cpu_, fast, x.view(), ids, weights);
  const auto expected = run(*reference_, truth, x.view(), ids, weights);
  float largest = 1.0f;
  for (const float value : expected) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], expected[i], 1e-5f * largest);
  std::vector<float> apart;
  for (int64_t t = 0; t < tokens; ++t) {
    const auto row = run(*cpu_, fast, x.view().slice(t, 1),
                         {ids.begin() + t * top_k, ids.begin() + (t + 1) * top_k},
                         {weights.begin() + t * top_k, weights.begin() + (t + 1) * top_k});
    apart.insert(apart.end(), row.begin(), row.end());
  }
  expect_same_bits(apart, y);
}

TEST_P(MoeTest, NoTokensAreNoWork) {
  std::vector<RandomMatrix> gate_up, down;
  gate_up.emplace_back(random_, DType::kFloat32, 8, 4);
  down.emplace_back(random_, DType::kFloat32, 4, 4);
  Strided x({0, 4}, 0);
  EXPECT_TRUE(run(*cpu_, pack(*cpu_, gate_up, down), x.view(), {}, {}).empty());
}

INSTANTIATE_FOR_ISAS(MoeTest);

}  // namespace
}  // namespace minisgl
