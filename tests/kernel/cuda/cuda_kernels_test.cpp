// Every operation of the GPU's kernels against the plain reference, on random shapes and values, in
// each activation type. Inputs are rounded to the type first, so that what differs is arithmetic:
//   float32   1e-5 of the result's norm
//   float16   2e-3, bfloat16 1e-2: a few roundings of the result
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "kernel/cuda_plugin.h"
#include "kernel/kernels.h"
#include "tensor/half.h"
#include "utils/arena.h"

namespace minisgl {
namespace {

using Shape = std::vector<int64_t>;

int64_t count(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

// The same values on the host (float32, exactly what the device holds) and on the device.
struct Pair {
  std::vector<float> values;
  Tensor device;
  Shape shape;
  TensorView host() {
    return TensorView(values.data(), DType::kFloat32, std::span<const int64_t>(shape));
  }
};

class CudaKernelsTest : public testing::TestWithParam<DType> {
 protected:
  static void SetUpTestSuite() {
    if (cuda_device_count() == 0) return;
    gpu_ = make_cuda_kernels(0).release();
    std::printf("on %s\n", gpu_->description().c_str());
  }
  static void TearDownTestSuite() {
    delete gpu_;
    gpu_ = nullptr;
  }
  void SetUp() override {
    if (gpu_ == nullptr) GTEST_SKIP() << "no NVIDIA GPU here";
  }

  DType type() const { return GetParam(); }
  double tolerance() const {
    return type() == DType::kFloat32 ? 1e-5 : type() == DType::kFloat16 ? 2e-3 : 1e-2;
  }
  float rounded(float x, DType dtype) const {
    if (dtype == DType::kFloat16) return half_to_float(float_to_half(x));
    if (dtype == DType::kBFloat16) return bfloat16_to_float(float_to_bfloat16(x));
    return x;
  }

  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  std::vector<float> normals(int64_t n, float scale = 1.0f) {
    std::normal_distribution<float> normal(0.0f, scale);
    std::vector<float> values(static_cast<size_t>(n));
    for (float& value : values) value = normal(random_);
    return values;
  }
  std::vector<int32_t> indices(int64_t n, int64_t limit) {
    std::vector<int32_t> values(static_cast<size_t>(n));
    for (int32_t& value : values) value = static_cast<int32_t>(pick(0, limit - 1));
    return values;
  }

  void upload(TensorView to, const std::vector<float>& values) {
    std::vector<uint16_t> bits;
    if (to.dtype() == DType::kFloat32) {
      gpu_->copy(to, TensorView(const_cast<float*>(values.data()), to.dtype(), to.shape()));
      return;
    }
    for (const float value : values) {
      bits.push_back(to.dtype() == DType::kFloat16 ? float_to_half(value)
                                                   : float_to_bfloat16(value));
    }
    gpu_->copy(to, TensorView(bits.data(), to.dtype(), to.shape()));
  }
  std::vector<float> download(TensorView from) {
    const auto n = static_cast<size_t>(from.numel());
    std::vector<float> values(n);
    if (from.dtype() == DType::kFloat32) {
      gpu_->copy(TensorView(values.data(), from.dtype(), from.shape()), from);
      gpu_->synchronize();
      return values;
    }
    std::vector<uint16_t> bits(n);
    gpu_->copy(TensorView(bits.data(), from.dtype(), from.shape()), from);
    gpu_->synchronize();
    for (size_t i = 0; i < n; ++i) {
      values[i] =
          from.dtype() == DType::kFloat16 ? half_to_float(bits[i]) : bfloat16_to_float(bits[i]);
    }
    return values;
  }
  std::vector<int32_t> download_ints(TensorView from) {
    std::vector<int32_t> values(static_cast<size_t>(from.numel()));
    gpu_->copy(TensorView(values.data(), DType::kInt32, from.shape()), from);
    gpu_->synchronize();
    return values;
  }

  Pair random_pair(const Shape& shape, DType dtype, float scale = 1.0f) {
    Pair pair{normals(count(shape), scale), gpu_->allocate(dtype, shape), shape};
    for (float& value : pair.values) value = rounded(value, dtype);
    upload(pair.device, pair.values);
    return pair;
  }
  Pair random_pair(const Shape& shape, float scale = 1.0f) {
    return random_pair(shape, type(), scale);
  }
  // NaN everywhere, so that what is not written shows.
  Pair output(const Shape& shape, DType dtype) {
    Pair pair{std::vector<float>(static_cast<size_t>(count(shape)), std::nanf("")),
              gpu_->allocate(dtype, shape), shape};
    upload(pair.device, pair.values);
    return pair;
  }
  Pair output(const Shape& shape) { return output(shape, type()); }
  Tensor ints(const std::vector<int32_t>& values, const Shape& shape) {
    Tensor tensor = gpu_->allocate(DType::kInt32, shape);
    gpu_->copy(tensor, TensorView(const_cast<int32_t*>(values.data()), DType::kInt32,
                                  std::span<const int64_t>(shape)));
    return tensor;
  }
  static TensorView host_ints(std::vector<int32_t>& values, const Shape& shape) {
    return TensorView(values.data(), DType::kInt32, std::span<const int64_t>(shape));
  }

  // ‖got − expected‖ / ‖expected‖; NaN anywhere fails.
  void expect_near(const std::vector<float>& got, const std::vector<float>& expected,
                   const std::string& what, double tolerance) {
    ASSERT_EQ(got.size(), expected.size());
    double difference = 0, norm = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      difference += std::pow(static_cast<double>(got[i]) - expected[i], 2);
      norm += std::pow(static_cast<double>(expected[i]), 2);
    }
    const double error = std::sqrt(difference / std::max(norm, 1e-30));
    worst_ = std::isnan(error) ? error : std::max(worst_, error);
    EXPECT_LE(error, tolerance) << what;
    EXPECT_FALSE(std::isnan(error)) << what;
  }
  void expect_near(Pair& result, const std::string& what) {
    expect_near(download(result.device), result.values, what, tolerance());
  }
  void TearDown() override {
    if (gpu_ == nullptr) return;
    std::printf("  %s: worst relative error %.2e\n", dtype_name(type()).data(), worst_);
  }

  RawMatrix raw(const std::vector<float>& values, int64_t rows) {
    return {DType::kFloat32, rows, static_cast<int64_t>(values.size()) / rows,
            reinterpret_cast<const std::byte*>(values.data())};
  }
  struct Matrices {
    std::unique_ptr<PackedMatrix> device, host;
  };
  Matrices random_matrices(int64_t rows, int64_t cols, float scale = 1.0f) {
    const std::vector<float> values = normals(rows * cols, scale);
    const RawMatrix parts[] = {raw(values, rows)};
    return {gpu_->pack(parts, type()), reference_->pack(parts, type())};
  }

  static Kernels* gpu_;
  std::unique_ptr<Kernels> reference_ = make_reference_kernels();
  std::mt19937 random_{20240607};
  double worst_ = 0;
};
Kernels* CudaKernelsTest::gpu_ = nullptr;

INSTANTIATE_TEST_SUITE_P(Types, CudaKernelsTest,
                         testing::Values(DType::kFloat32, DType::kFloat16, DType::kBFloat16),
                         [](const auto& info) { return std::string(dtype_name(info.param)); });

TEST_P(CudaKernelsTest, CopiesThereAndBackUnchangedWhateverTheSize) {
  for (const int64_t n : {1, 7, 1000, 5'000'000}) {
    Pair pair = random_pair({n});
    EXPECT_EQ(download(pair.device), pair.values) << n;
  }
  // More small copies than the staging ring holds, none of them lost.
  std::vector<Pair> pairs;
  for (int i = 0; i < 300; ++i) pairs.push_back(random_pair({50'000}));
  for (Pair& pair : pairs) EXPECT_EQ(download(pair.device), pair.values);
}

TEST_P(CudaKernelsTest, AllocatesZeroes) {
  const Shape shape = {3, 1000};
  const Tensor tensor = gpu_->allocate(type(), shape);
  EXPECT_EQ(download(tensor), std::vector<float>(3000, 0.0f));
}

TEST_P(CudaKernelsTest, EmbeddingPicksRows) {
  for (int round = 0; round < 6; ++round) {
    const int64_t vocab = pick(1, 500), dim = pick(1, 40) * (round % 2 ? 8 : 1);
    const int64_t tokens = pick(1, 60);
    const Matrices table = random_matrices(vocab, dim);
    std::vector<int32_t> ids = indices(tokens, vocab);
    Pair out = output({tokens, dim});
    reference_->embedding(out.host(), host_ints(ids, {tokens}), *table.host);
    gpu_->embedding(out.device, ints(ids, {tokens}), *table.device);
    expect_near(out, "embedding");
    gpu_->embedding(out.device, host_ints(ids, {tokens}), *table.device);
    expect_near(out, "embedding of ids on the host");
  }
}

TEST_P(CudaKernelsTest, LinearMultipliesWithAndWithoutBias) {
  for (int round = 0; round < 12; ++round) {
    const int64_t tokens = round < 3 ? round + 1 : pick(1, 300);
    const int64_t in = pick(1, 90) * (round % 3 ? 8 : 1),
                  out_dim = pick(1, 90) * (round % 2 ? 8 : 1);
    const Matrices w = random_matrices(out_dim, in, 0.1f);
    Pair x = random_pair({tokens, in}), bias = random_pair({out_dim}, DType::kFloat32);
    const bool has_bias = round % 2 == 1;
    for (const DType y_type : {type(), DType::kFloat32}) {
      Pair y = output({tokens, out_dim}, y_type);
      reference_->linear(y.host(), x.host(), *w.host, has_bias ? bias.host() : TensorView());
      gpu_->linear(y.device, x.device, *w.device, has_bias ? bias.device.view() : TensorView());
      expect_near(y, fmt::format("linear {} x {} x {}", tokens, in, out_dim));
    }
  }
}

TEST_P(CudaKernelsTest, PackDequantisesBlockFormats) {
  // Q8_0: a half scale and 32 int8 a block. Q4_0: a half scale and 16 bytes of two nibbles.
  for (const DType dtype : {DType::kQ8_0, DType::kQ4_0}) {
    const int64_t rows = 24, cols = 96;
    std::vector<std::byte> bytes(static_cast<size_t>(rows * bytes_of(dtype, cols)));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(pick(0, 255));
    for (size_t at = 0; at < bytes.size(); at += static_cast<size_t>(block_bytes(dtype))) {
      const uint16_t scale = float_to_half(0.01f * static_cast<float>(pick(1, 9)));
      std::memcpy(&bytes[at], &scale, sizeof(scale));
    }
    RawMatrix part{dtype, rows, cols, bytes.data()};
    part.interleaved_head_dim = 8;
    const RawMatrix parts[] = {part};
    const auto on_device = gpu_->pack(parts, type());
    const auto on_host = reference_->pack(parts, type());
    Pair x = random_pair({5, cols}), y = output({5, rows});
    reference_->linear(y.host(), x.host(), *on_host, {});
    gpu_->linear(y.device, x.device, *on_device, {});
    expect_near(y, std::string(dtype_name(dtype)));
    EXPECT_EQ(download(gpu_->load_float(part)), [&] {
      const Tensor loaded = reference_->load_float(part);
      const float* data = loaded.view().data<float>();
      return std::vector<float>(data, data + rows * cols);
    }());
  }
}

TEST_P(CudaKernelsTest, RmsNormOfRowsAndOfHeadsInAStridedTensor) {
  for (int round = 0; round < 10; ++round) {
    const int64_t rows = pick(1, 70), dim = round % 2 ? pick(1, 700) * 8 : pick(1, 3000);
    Pair x = random_pair({rows, dim}), w = random_pair({dim}, DType::kFloat32);
    Pair y = output({rows, dim});
    reference_->rms_norm(y.host(), x.host(), w.host(), 1e-6f);
    gpu_->rms_norm(y.device, x.device, w.device, 1e-6f);
    expect_near(y, fmt::format("rms_norm {} x {}", rows, dim));
  }
  for (const int64_t head_dim : {8, 20, 64, 128, 256}) {  // q of a fused qkv, in place
    const int64_t tokens = pick(1, 50), heads = pick(1, 9);
    Pair qkv = random_pair({tokens, (heads + 2) * head_dim});
    Pair w = random_pair({head_dim}, DType::kFloat32);
    const auto q = [&](TensorView all) {
      return all.columns(0, heads * head_dim).split_heads(heads, head_dim);
    };
    reference_->rms_norm(q(qkv.host()), q(qkv.host()), w.host(), 1e-5f);
    gpu_->rms_norm(q(qkv.device), q(qkv.device), w.device, 1e-5f);
    expect_near(qkv, fmt::format("rms_norm of heads of {}", head_dim));
  }
}

TEST_P(CudaKernelsTest, AddRmsNormKeepsTheSumAndNormalisesIt) {
  for (int round = 0; round < 8; ++round) {
    const int64_t rows = pick(1, 70), dim = round % 2 ? pick(1, 700) * 8 : pick(1, 3000);
    Pair x = random_pair({rows, dim}), addend = random_pair({rows, dim});
    Pair w = random_pair({dim}, DType::kFloat32), y = output({rows, dim});
    reference_->add_rms_norm(y.host(), x.host(), addend.host(), w.host(), 1e-6f);
    gpu_->add_rms_norm(y.device, x.device, addend.device, w.device, 1e-6f);
    expect_near(y, "normalised");
    expect_near(x, "the sum");
  }
}

TEST_P(CudaKernelsTest, ARowsNormDoesNotDependOnItsCompany) {
  const int64_t rows = 33, dim = 2560;
  Pair x = random_pair({rows, dim}), w = random_pair({dim}, DType::kFloat32);
  Pair together = output({rows, dim}), alone = output({1, dim});
  gpu_->rms_norm(together.device, x.device, w.device, 1e-6f);
  const std::vector<float> all = download(together.device);
  for (const int64_t r : {0, 7, 32}) {
    gpu_->rms_norm(alone.device, x.device.view().slice(r, 1), w.device, 1e-6f);
    const std::vector<float> one = download(alone.device);
    EXPECT_TRUE(std::equal(one.begin(), one.end(), all.begin() + r * dim)) << r;
  }
}

TEST_P(CudaKernelsTest, AddAddsStridedRows) {
  const int64_t rows = 37, dim = 200;
  Pair wide = random_pair({rows, 2 * dim}), addend = random_pair({rows, dim});
  reference_->add(wide.host().columns(dim, dim), addend.host());
  gpu_->add(wide.device.view().columns(dim, dim), addend.device);
  expect_near(wide, "add");
}

TEST_P(CudaKernelsTest, RopeRotatesWholeAndPartOfTheHeads) {
  for (const auto& [head_dim, rotary] :
       {std::pair<int64_t, int64_t>{64, 64}, {128, 128}, {80, 32}, {16, 16}, {6, 4}}) {
    const int64_t tokens = pick(1, 60), hq = pick(1, 12), hkv = pick(1, 4), positions = 300;
    Pair q = random_pair({tokens, hq, head_dim}), k = random_pair({tokens, hkv, head_dim});
    Pair cos_sin = random_pair({positions, rotary}, DType::kFloat32);
    std::vector<int32_t> at = indices(tokens, positions);
    reference_->rope(q.host(), k.host(), host_ints(at, {tokens}), cos_sin.host());
    gpu_->rope(q.device, k.device, ints(at, {tokens}), cos_sin.device);
    expect_near(q, "q");
    expect_near(k, "k");
  }
}

TEST_P(CudaKernelsTest, NormalisesAndRotatesHeadsInOnePass) {
  for (const auto& [head_dim, rotary] :
       {std::pair<int64_t, int64_t>{64, 64}, {128, 128}, {80, 32}, {16, 16}, {6, 4}, {256, 256}}) {
    const int64_t tokens = pick(1, 60), hq = pick(1, 12), hkv = pick(1, 4), positions = 300;
    Pair qkv = random_pair({tokens, (hq + 2 * hkv) * head_dim});
    const auto q = [&](TensorView all) {
      return all.columns(0, hq * head_dim).split_heads(hq, head_dim);
    };
    const auto k = [&](TensorView all) {
      return all.columns(hq * head_dim, hkv * head_dim).split_heads(hkv, head_dim);
    };
    Pair q_w = random_pair({head_dim}, DType::kFloat32),
         k_w = random_pair({head_dim}, DType::kFloat32);
    Pair cos_sin = random_pair({positions, rotary}, DType::kFloat32);
    std::vector<int32_t> at = indices(tokens, positions);
    reference_->qk_norm_rope(q(qkv.host()), k(qkv.host()), q_w.host(), k_w.host(), 1e-6f,
                             host_ints(at, {tokens}), cos_sin.host());
    gpu_->qk_norm_rope(q(qkv.device), k(qkv.device), q_w.device, k_w.device, 1e-6f,
                       ints(at, {tokens}), cos_sin.device);
    expect_near(qkv, fmt::format("heads of {}, {} rotated", head_dim, rotary));
  }
}

TEST_P(CudaKernelsTest, ARowGivesTheSameBitsAloneAndInAPair) {
  if (type() == DType::kFloat32) GTEST_SKIP() << "float32 takes the library's matrix kernels";
  for (const auto& [out_dim, in] :
       {std::pair<int64_t, int64_t>{1024, 3072}, {3000, 1024}, {8001, 256}}) {
    const Matrices w = random_matrices(out_dim, in, 0.1f);
    Pair x = random_pair({2, in}), y = output({2, out_dim}), alone = output({1, out_dim});
    reference_->linear(y.host(), x.host(), *w.host, {});
    gpu_->linear(y.device, x.device, *w.device, {});
    expect_near(y, "two rows");
    const std::vector<float> together = download(y.device);
    for (const int64_t row : {0, 1}) {
      gpu_->linear(alone.device, x.device.view().slice(row, 1), *w.device, {});
      const std::vector<float> one = download(alone.device);
      EXPECT_TRUE(std::equal(one.begin(), one.end(), together.begin() + row * out_dim)) << row;
    }
  }
}

TEST_P(CudaKernelsTest, RecordedWorkIsRepeatedOnNewValues) {
  Pair x = random_pair({4, 512}), y = output({4, 256}), z = output({4, 128});
  const Matrices w = random_matrices(256, 512, 0.1f);
  const auto recorded = gpu_->record([&] {
    gpu_->linear(y.device, x.device, *w.device, {});
    gpu_->silu_mul(z.device, y.device);
  });
  for (int round = 0; round < 3; ++round) {
    x.values = random_pair({4, 512}).values;
    upload(x.device, x.values);
    recorded->run();
    reference_->linear(y.host(), x.host(), *w.host, {});
    for (float& value : y.values) value = rounded(value, type());
    reference_->silu_mul(z.host(), y.host());
    expect_near(z, "replayed");
  }
  EXPECT_THROW(gpu_->record([&] { upload(x.device, x.values); }), Error);
  gpu_->linear(y.device, x.device, *w.device, {});  // and what follows works
  gpu_->synchronize();
}

TEST_P(CudaKernelsTest, GatesMultiplyByTheirActivation) {
  for (int round = 0; round < 6; ++round) {
    const int64_t rows = pick(1, 50), dim = round % 2 ? pick(1, 100) * 8 : pick(1, 777);
    Pair gate_up = random_pair({rows, 2 * dim}, 3.0f), y = output({rows, dim});
    reference_->silu_mul(y.host(), gate_up.host());
    gpu_->silu_mul(y.device, gate_up.device);
    expect_near(y, "silu_mul");
    reference_->gelu_mul(y.host(), gate_up.host());
    gpu_->gelu_mul(y.device, gate_up.device);
    expect_near(y, "gelu_mul");
  }
}

TEST_P(CudaKernelsTest, SoftcapBoundsLogits) {
  Pair x = random_pair({7, 333}, 40.0f);
  reference_->softcap(x.host(), 30.0f);
  gpu_->softcap(x.device, 30.0f);
  expect_near(x, "softcap");
}

TEST_P(CudaKernelsTest, StoreKVWritesRowsWhereTheyBelongAndNothingElse) {
  for (const DType pool_type : {type(), DType::kFloat32, DType::kBFloat16}) {
    for (const int64_t head_dim : {64, 128, 20}) {
      const int64_t tokens = pick(1, 40), heads = pick(1, 8), locations = 100;
      Pair pool = random_pair({locations, heads, head_dim}, pool_type);
      Pair qkv = random_pair({tokens, 3 * heads * head_dim});
      const auto k = [&](TensorView all) {
        return all.columns(heads * head_dim, heads * head_dim).split_heads(heads, head_dim);
      };
      std::vector<int32_t> loc(static_cast<size_t>(locations));
      std::iota(loc.begin(), loc.end(), 0);
      std::ranges::shuffle(loc, random_);
      loc.resize(static_cast<size_t>(tokens));
      reference_->store_kv(pool.host(), k(qkv.host()), host_ints(loc, {tokens}));
      for (float& value : pool.values) value = rounded(value, pool_type);
      gpu_->store_kv(pool.device, k(qkv.device), ints(loc, {tokens}));
      EXPECT_EQ(download(pool.device), pool.values) << head_dim;
    }
  }
}

TEST_P(CudaKernelsTest, GatherRowsPicksRows) {
  Pair x = random_pair({50, 96}), out = output({9, 96});
  std::vector<int32_t> rows = indices(9, 50);
  reference_->gather_rows(out.host(), x.host(), host_ints(rows, {9}));
  gpu_->gather_rows(out.device, x.device, ints(rows, {9}));
  expect_near(out, "gather_rows");
}

TEST_P(CudaKernelsTest, ArgmaxTakesTheLowestOfEqualMaxima) {
  for (const int64_t vocab : {1, 2, 1000, 151936}) {
    Pair logits = random_pair({5, vocab});
    for (int64_t r = 0; r < 5 && vocab > 2; ++r) {  // two equal maxima a row
      const auto row = logits.values.begin() + r * vocab;
      row[pick(0, vocab - 1)] = 100.0f;
      row[pick(0, vocab - 1)] = 100.0f;
    }
    upload(logits.device, logits.values);
    std::vector<int32_t> expected(5), got(5);
    reference_->argmax(host_ints(expected, {5}), logits.host());
    const Tensor ids = ints(got, {5});
    gpu_->argmax(ids, logits.device);
    EXPECT_EQ(download_ints(ids), expected) << vocab;
    gpu_->argmax(host_ints(got, {5}), logits.device);
    gpu_->synchronize();
    EXPECT_EQ(got, expected) << "ids on the host";
  }
}

TEST_P(CudaKernelsTest, MoeRoutesToTheTopExperts) {
  for (const auto& [experts, top_k] :
       {std::pair<int64_t, int64_t>{8, 2}, {128, 8}, {60, 4}, {5, 5}}) {
    for (const bool normalize : {false, true}) {
      const int64_t tokens = pick(1, 50);
      Pair logits = random_pair({tokens, experts});
      std::vector<int32_t> expected(static_cast<size_t>(tokens * top_k));
      Pair weights = output({tokens, top_k}, DType::kFloat32);
      reference_->moe_route(host_ints(expected, {tokens, top_k}), weights.host(), logits.host(),
                            normalize);
      const Tensor ids = ints(std::vector<int32_t>(expected.size(), -1), {tokens, top_k});
      gpu_->moe_route(ids, weights.device, logits.device, normalize);
      EXPECT_EQ(download_ints(ids), expected);
      expect_near(download(weights.device), weights.values, "weights", 1e-5);
    }
  }
}

TEST_P(CudaKernelsTest, MoeMlpSumsTheChosenExperts) {
  for (int round = 0; round < 4; ++round) {
    const int64_t tokens = pick(1, 20), experts = pick(2, 9), top_k = pick(1, 2);
    const int64_t hidden = round % 2 ? 64 : 37, inner = round % 2 ? 96 : 21;
    std::vector<std::unique_ptr<PackedMatrix>> gate_up, gate_up_host, down, down_host;
    for (int64_t e = 0; e < experts; ++e) {
      Matrices first = random_matrices(2 * inner, hidden, 0.2f);
      Matrices second = random_matrices(hidden, inner, 0.2f);
      gate_up.push_back(std::move(first.device));
      gate_up_host.push_back(std::move(first.host));
      down.push_back(std::move(second.device));
      down_host.push_back(std::move(second.host));
    }
    Pair x = random_pair({tokens, hidden}), y = output({tokens, hidden});
    Pair weights = random_pair({tokens, top_k}, DType::kFloat32);
    std::vector<int32_t> ids = indices(tokens * top_k, experts);
    const Shape scratch_shape = {1 << 20};
    const Tensor host_scratch = Tensor::zeros(DType::kUInt8, scratch_shape);
    const Tensor device_scratch = gpu_->allocate(DType::kUInt8, scratch_shape);
    Arena host_arena(host_scratch.view().raw(), 1 << 20),
        arena(device_scratch.view().raw(), 1 << 20);
    reference_->moe_mlp(y.host(), x.host(), host_ints(ids, {tokens, top_k}), weights.host(),
                        gate_up_host, down_host, host_arena);
    gpu_->moe_mlp(y.device, x.device, ints(ids, {tokens, top_k}), weights.device, gate_up, down,
                  arena);
    expect_near(y, "moe_mlp");
    EXPECT_EQ(arena.mark(), 0);
  }
}

struct AttentionCase {
  std::string name;
  std::vector<int64_t> new_tokens, keys;
  int64_t hq, hkv, head_dim;
  int64_t window = 0;
  float softcap = 0.0f;
  bool sinks = false;
};
const std::vector<AttentionCase> kAttentionCases = {
    {"decode", {1, 1, 1}, {1, 300, 77}, 8, 2, 64},
    {"mixed", {1, 33, 5, 0, 12}, {700, 33, 64, 3, 12}, 6, 3, 128},
    {"window", {20, 1, 70}, {90, 600, 70}, 4, 4, 32, 16},
    {"softcap", {9, 1}, {40, 270}, 4, 1, 80, 0, 20.0f},
    {"sinks", {9, 1, 1}, {40, 270, 1}, 8, 8, 16, 0, 0.0f, true},
    {"all", {13, 1, 40}, {300, 270, 40}, 10, 2, 256, 33, 15.0f, true},
};

TEST_P(CudaKernelsTest, PagedAttentionIsTheDefinition) {
  for (const AttentionCase& c : kAttentionCases) {
    const auto bs = static_cast<int64_t>(c.keys.size());
    const int64_t max_k = std::ranges::max(c.keys);
    std::vector<int32_t> cu = {0}, lengths, table(static_cast<size_t>(bs * max_k));
    const int64_t locations = bs * max_k + 5;
    std::vector<int32_t> places(static_cast<size_t>(locations));
    std::iota(places.begin(), places.end(), 0);
    std::ranges::shuffle(places, random_);
    for (int64_t i = 0; i < bs; ++i) {
      cu.push_back(cu.back() + static_cast<int32_t>(c.new_tokens[static_cast<size_t>(i)]));
      lengths.push_back(static_cast<int32_t>(c.keys[static_cast<size_t>(i)]));
    }
    std::copy_n(places.begin(), table.size(), table.begin());
    const int64_t tokens = cu.back();
    Pair q = random_pair({tokens, c.hq, c.head_dim}), out = output({tokens, c.hq, c.head_dim});
    Pair k = random_pair({locations, c.hkv, c.head_dim});
    Pair v = random_pair({locations, c.hkv, c.head_dim});
    Pair sinks = random_pair({c.hq}, DType::kFloat32),
         lse = output({tokens, c.hq}, DType::kFloat32);
    PagedAttentionArgs args;
    args.max_seqlen_q = std::ranges::max(c.new_tokens);
    args.max_seqlen_k = max_k;
    args.scale = 1.0f / std::sqrt(static_cast<float>(c.head_dim));
    args.softcap = c.softcap;
    args.window = c.window;

    args.out = out.host(), args.q = q.host(), args.k_pool = k.host(), args.v_pool = v.host();
    args.cu_seqlens_q = host_ints(cu, {bs + 1}), args.cache_seqlens = host_ints(lengths, {bs});
    args.page_table = host_ints(table, {bs, max_k});
    args.lse = lse.host();
    if (c.sinks) args.sinks = sinks.host();
    reference_->paged_attention(args);

    const Tensor device_cu = ints(cu, {bs + 1}), device_lengths = ints(lengths, {bs});
    const Tensor device_table = ints(table, {bs, max_k});
    args.out = out.device, args.q = q.device, args.k_pool = k.device, args.v_pool = v.device;
    args.cu_seqlens_q = device_cu, args.cache_seqlens = device_lengths;
    args.page_table = device_table;
    args.lse = lse.device;
    if (c.sinks) args.sinks = sinks.device;
    gpu_->paged_attention(args);
    expect_near(out, c.name);
    expect_near(download(lse.device), lse.values, c.name + " lse", 1e-5);
  }
}

TEST(CudaPlugin, AGpuThatDoesNotExistIsRefusedByName) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no NVIDIA GPU here";
  try {
    make_cuda_kernels(99);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("cuda:99"), std::string::npos) << error.what();
  }
}

TEST(CudaPlugin, WithoutADriverTheErrorSaysWhatToInstall) {
  if (cuda_device_count() > 0) GTEST_SKIP() << "there is a GPU";
  try {
    make_cuda_kernels(0);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kResource);
    EXPECT_NE(std::string(error.what()).find("driver"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace minisgl
