#include "kvcache/kv_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "kernel/kernels.h"
#include "utils/error.h"

namespace minisgl {
namespace {

using ::testing::HasSubstr;

KVPoolConfig small_config() {
  return {.num_layers = 3, .num_pages = 4, .page_size = 2, .num_kv_heads = 2, .head_dim = 4};
}

TEST(KVPoolTest, HasOneMorePageThanAskedForAndTheDummyPointsIntoIt) {
  const auto kernels = make_reference_kernels();
  const KVPool pool(*kernels, small_config());
  EXPECT_EQ(pool.k(0).describe(), "float32 [10, 2, 4] on cpu");
  EXPECT_EQ(pool.v(2).describe(), "float32 [10, 2, 4] on cpu");
  EXPECT_EQ(pool.dummy_location(), 8);
  EXPECT_EQ(pool.kv_layout(), "NHD");
}

TEST(KVPoolTest, StoresRowsAtTheirLocationsInTheirLayerOnly) {
  const auto kernels = make_reference_kernels();
  KVPool pool(*kernels, small_config());
  std::vector<float> k(2 * 2 * 4), v(2 * 2 * 4);
  std::iota(k.begin(), k.end(), 1.0f);
  std::iota(v.begin(), v.end(), 101.0f);
  std::vector<int32_t> loc = {7, 2};
  pool.store(TensorView(k.data(), DType::kFloat32, {2, 2, 4}),
             TensorView(v.data(), DType::kFloat32, {2, 2, 4}), TensorView::of(std::span(loc)), 1);
  EXPECT_EQ(pool.k(1).select(7).values<float>()[0], 1.0f);
  EXPECT_EQ(pool.k(1).select(2).values<float>()[7], 16.0f);
  EXPECT_EQ(pool.v(1).select(2).values<float>()[0], 109.0f);
  for (const int layer : {0, 2}) {
    for (const float x : pool.k(layer).values<float>()) ASSERT_EQ(x, 0.0f);
  }
}

TEST(KVPoolTest, RefusesRowsOfAnotherShape) {
  const auto kernels = make_reference_kernels();
  KVPool pool(*kernels, small_config());
  std::vector<float> rows(2 * 4 * 4);
  std::vector<int32_t> loc = {0, 1};
  const TensorView wrong(rows.data(), DType::kFloat32, {2, 4, 4});
  EXPECT_THROW(pool.store(wrong, wrong, TensorView::of(std::span(loc)), 0), Error);
}

TEST(KVPoolTest, CountsTheBytesOfAPage) {
  // Qwen3-0.6B in bfloat16.
  EXPECT_EQ(KVPool::bytes_per_page({.num_layers = 28,
                                    .num_pages = 1,
                                    .page_size = 1,
                                    .num_kv_heads = 8,
                                    .head_dim = 128,
                                    .dtype = DType::kBFloat16}),
            114688);
}

TEST(KVPoolTest, RefusesPoolsThatCannotBeAddressed) {
  const auto kernels = make_reference_kernels();
  KVPoolConfig config = small_config();
  for (const auto& [pages, page_size] : {std::pair<int64_t, int64_t>{int64_t{1} << 31, 1},
                                         {int64_t{1} << 62, 16},
                                         {0, 1},
                                         {4, 0},
                                         {-1, 1}}) {
    config.num_pages = pages;
    config.page_size = page_size;
    EXPECT_THROW(KVPool(*kernels, config), Error) << pages << " " << page_size;
  }
  config = small_config();
  config.num_pages = 1 << 30;
  config.num_kv_heads = int64_t{1} << 40;
  try {
    const KVPool pool(*kernels, config);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("--num-pages"));
  }
}

}  // namespace
}  // namespace minisgl
