// paged_attention() of the CPU's kernels: equal to the reference, and the same bits however the
// work comes in.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "random_data.h"

namespace minisgl {
namespace {

using namespace test;

// A ragged batch over a pool in random order.
struct Case {
  int64_t num_qo_heads, num_kv_heads, dim;
  DType kv_dtype = DType::kFloat32;
  std::vector<int32_t> cu = {0};
  std::vector<int32_t> kv_lens = {};
  std::vector<int32_t> pages = {};  // [bs, width]
  int64_t width = 0;
  Tensor k_pool = {}, v_pool = {};
  std::vector<float> q = {}, sinks = {};
  float softcap = 0;
  int64_t window = 0;

  int64_t tokens() const { return cu.back(); }
  int64_t requests() const { return static_cast<int64_t>(kv_lens.size()); }
};

struct Output {
  std::vector<float> out, lse;
};

class AttentionTest : public IsaTest {
 protected:
  // requests: (new tokens, keys)
  Case make_case(std::vector<std::pair<int, int>> requests, int64_t num_qo_heads,
                 int64_t num_kv_heads, int64_t dim, DType kv_dtype = DType::kFloat32) {
    Case c{num_qo_heads, num_kv_heads, dim};
    c.kv_dtype = kv_dtype;
    int64_t keys = 0;
    for (const auto& [n, kv_len] : requests) {
      c.cu.push_back(c.cu.back() + n);
      c.kv_lens.push_back(kv_len);
      c.width = std::max<int64_t>(c.width, kv_len);
      keys += kv_len;
    }
    std::vector<int32_t> locations(static_cast<size_t>(keys) + 7);
    std::iota(locations.begin(), locations.end(), 0);
    for (size_t i = locations.size(); i > 1; --i) {
      std::swap(locations[i - 1],
                locations[static_cast<size_t>(random_.integer(0, static_cast<int64_t>(i) - 1))]);
    }
    c.pages.assign(static_cast<size_t>(c.requests() * c.width), -1);  // unused: never read
    auto next = locations.begin();
    for (int64_t i = 0; i < c.requests(); ++i) {
      for (int64_t j = 0; j < c.kv_lens[static_cast<size_t>(i)]; ++j) {
        c.pages[static_cast<size_t>(i * c.width + j)] = *next++;
      }
    }
    const int64_t pool = static_cast<int64_t>(locations.size());
    c.k_pool = random_pool(pool, num_kv_heads, dim, kv_dtype);
    c.v_pool = random_pool(pool, num_kv_heads, dim, kv_dtype);
    c.q = random_.normals(c.tokens() * num_qo_heads * dim);
    return c;
  }

  Tensor random_pool(int64_t locations, int64_t heads, int64_t dim, DType dtype) {
    Tensor pool = Tensor::zeros(dtype, {locations, heads, dim});
    std::vector<float> rows = random_.normals(locations * heads * dim);
    std::vector<int32_t> loc(static_cast<size_t>(locations));
    std::iota(loc.begin(), loc.end(), 0);
    reference_->store_kv(pool, view(rows, {locations, heads, dim}), view(loc, {locations}));
    return pool;
  }

  static Tensor copy_of(const Tensor& tensor) {
    Tensor copy = Tensor::zeros(tensor.view().dtype(), tensor.view().shape());
    std::memcpy(copy.view().raw(), tensor.view().raw(), static_cast<size_t>(tensor.view().bytes()));
    return copy;
  }

  Output run(Kernels& kernels, Case& c) {
    // q as columns of a wider qkv row, as layers hand it in.
    Strided qkv({c.tokens(), c.num_qo_heads * c.dim}, 5);
    for (int64_t t = 0; t < c.tokens(); ++t) {
      std::copy_n(c.q.data() + t * c.num_qo_heads * c.dim, c.num_qo_heads * c.dim,
                  qkv.view().data<float>() + t * qkv.view().stride(0));
    }
    Strided out({c.tokens(), c.num_qo_heads * c.dim}, 3);
    Output result;
    result.lse.assign(static_cast<size_t>(c.tokens() * c.num_qo_heads), -99.0f);
    PagedAttentionArgs args;
    args.q = qkv.view().split_heads(c.num_qo_heads, c.dim);
    args.out = out.view().split_heads(c.num_qo_heads, c.dim);
    args.k_pool = c.k_pool;
    args.v_pool = c.v_pool;
    args.cu_seqlens_q = view(c.cu, {c.requests() + 1});
    args.cache_seqlens = view(c.kv_lens, {c.requests()});
    args.page_table = view(c.pages, {c.requests(), c.width});
    if (!c.sinks.empty()) args.sinks = view(c.sinks, {c.num_qo_heads});
    args.lse = view(result.lse, {c.tokens(), c.num_qo_heads});
    args.max_seqlen_q = c.tokens();
    args.max_seqlen_k = c.width;
    args.scale = 1.0f / std::sqrt(static_cast<float>(c.dim));
    args.softcap = c.softcap;
    args.window = c.window;
    kernels.paged_attention(args);
    EXPECT_TRUE(out.guards_are_intact());
    result.out = out.dense();
    return result;
  }

  void expect_equals_reference(Case& c) {
    const Output got = run(*cpu_, c);
    const Output expected = run(*reference_, c);
    expect_near(got.out, expected.out, 5e-6f);
    expect_near(got.lse, expected.lse, 5e-6f);
  }
};

TEST_P(AttentionTest, EqualsTheReferenceForEveryKindOfBatch) {
  TRACE_SEED();
  const std::vector<std::pair<int, int>> mixed = {{6, 6}, {3, 70}, {0, 5}, {1, 129}, {45, 60}};
  for (const int64_t dim : {16, 64, 80, 96, 128, 256, 320}) {
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
      SCOPED_TRACE("D=" + std::to_string(dim) + " KV " + std::string(dtype_name(dtype)));
      const int64_t kv_heads = random_.integer(1, 2);
      Case c = make_case(mixed, kv_heads * random_.integer(1, 4), kv_heads, dim, dtype);
      expect_equals_reference(c);
    }
  }
}

TEST_P(AttentionTest, EqualsTheReferenceWithWindowsSoftcapAndSinks) {
  TRACE_SEED();
  for (int round = 0; round < 8; ++round) {
    Case c = make_case({{1, static_cast<int>(random_.integer(1, 200))},
                        {static_cast<int>(random_.integer(1, 60)), 90},
                        {40, 40}},
                       6, 2, random_.integer(1, 70));
    if (round & 1) c.window = random_.integer(1, 100);
    if (round & 2) c.softcap = 5.0f;
    if (round & 4) c.sinks = random_.normals(6, 3.0f);
    SCOPED_TRACE("window " + std::to_string(c.window) + ", softcap " + std::to_string(c.softcap));
    expect_equals_reference(c);
  }
}

TEST_P(AttentionTest, ASinkAboveAllScoresLeavesAlmostNothing) {
  TRACE_SEED();
  Case c = make_case({{2, 3}}, 2, 1, 32);
  c.sinks = {100.0f, -100.0f};
  expect_equals_reference(c);
}

TEST_P(AttentionTest, LargeScoresDoNotOverflow) {
  TRACE_SEED();
  Case c = make_case({{20, 50}, {1, 77}}, 4, 2, 64);
  for (float& value : c.q) value *= 60.0f;
  const Output got = run(*cpu_, c);
  const Output expected = run(*reference_, c);
  expect_near(got.out, expected.out, 1e-3f);
}

TEST_P(AttentionTest, GivesTheSameBitsForOneTokenAndForMany) {
  TRACE_SEED();
  for (const int64_t window : {0, 9, 50}) {
    Case whole = make_case({{77, 110}}, 6, 2, 64, DType::kBFloat16);
    whole.window = window;
    whole.sinks = random_.normals(6);
    const Output together = run(*cpu_, whole);
    const int64_t row = whole.num_qo_heads * whole.dim;
    for (const int64_t chunk : {int64_t{1}, random_.integer(2, 40)}) {
      Output apart;
      for (int64_t begin = 0; begin < 77; begin += chunk) {
        const int64_t n = std::min<int64_t>(chunk, 77 - begin);
        Case part{whole.num_qo_heads, whole.num_kv_heads, whole.dim};
        part.cu = {0, static_cast<int32_t>(n)};
        part.kv_lens = {static_cast<int32_t>(110 - 77 + begin + n)};
        part.pages = whole.pages;
        part.width = whole.width;
        part.k_pool = copy_of(whole.k_pool);
        part.v_pool = copy_of(whole.v_pool);
        part.q.assign(whole.q.begin() + begin * row, whole.q.begin() + (begin + n) * row);
        part.sinks = whole.sinks;
        part.window = window;
        const Output output = run(*cpu_, part);
        apart.out.insert(apart.out.end(), output.out.begin(), output.out.end());
        apart.lse.insert(apart.lse.end(), output.lse.begin(), output.lse.end());
      }
      expect_same_bits(apart.out, together.out);
      expect_same_bits(apart.lse, together.lse);
    }
  }
}

TEST_P(AttentionTest, GivesTheSameBitsAmongOtherRequestsAndAtAnyThreadCount) {
  TRACE_SEED();
  Case batch = make_case({{5, 40}, {1, 100}, {33, 33}}, 4, 2, 128);
  const Output together = run(*cpu_, batch);
  for (const int num_threads : {1, 3}) {
    ThreadPool threads(num_threads);
    const auto kernels = make_cpu_kernels(threads, GetParam());
    expect_same_bits(run(*kernels, batch).out, together.out);
  }
  // Request 1 alone.
  const int64_t row = batch.num_qo_heads * batch.dim;
  Case alone{batch.num_qo_heads, batch.num_kv_heads, batch.dim};
  alone.cu = {0, 1};
  alone.kv_lens = {100};
  alone.width = batch.width;
  alone.pages.assign(batch.pages.begin() + batch.width, batch.pages.begin() + 2 * batch.width);
  alone.k_pool = copy_of(batch.k_pool);
  alone.v_pool = copy_of(batch.v_pool);
  alone.q.assign(batch.q.begin() + 5 * row, batch.q.begin() + 6 * row);
  const std::vector<float> expected(together.out.begin() + 5 * row, together.out.begin() + 6 * row);
  expect_same_bits(run(*cpu_, alone).out, expected);
}

TEST_P(AttentionTest, RefusesLocationsOutsideThePool) {
  Case c = make_case({{1, 4}}, 1, 1, 8);
  c.pages[2] = 1000;
  EXPECT_THROW(run(*cpu_, c), Error);
  c.pages[2] = -1;
  EXPECT_THROW(run(*cpu_, c), Error);
}

INSTANTIATE_FOR_ISAS(AttentionTest);

}  // namespace
}  // namespace minisgl
