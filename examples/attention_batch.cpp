// Three requests in one attention call: A prefills 6 tokens, B found 4 of its 7 in the cache, C has
// 8 and decodes one more. docs/attention.md draws this batch.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

#include "attention/registry.h"
#include "kernel/kernels.h"
#include "kvcache/kv_pool.h"

using namespace minisgl;

constexpr int64_t kHq = 16, kHkv = 8, kDim = 128, kTableWidth = 16;
const float kScale = 1.0f / std::sqrt(float{kDim});

struct Sequence {
  std::vector<int32_t> locations;  // of its tokens in the pool
  int64_t cached;
  std::vector<float> q, k, v;  // of all its tokens
};

std::vector<float> randoms(size_t n, std::mt19937& generator) {
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& x : values) x = normal(generator);
  return values;
}

TensorView heads(std::vector<float>& x, int64_t n) {
  return TensorView(x.data(), DType::kFloat32, {int64_t(x.size()) / (n * kDim), n, kDim});
}

// Head h of the query at `position`, over all keys up to there, in double precision.
std::vector<double> complete_attention(const Sequence& s, int64_t position, int64_t h) {
  const float* q = &s.q[(position * kHq + h) * kDim];
  const auto times = [](double a, double b) { return a * b; };
  std::vector<double> out(kDim);
  double sum = 0;
  for (int64_t j = 0; j <= position; ++j) {
    const int64_t at = (j * kHkv + h / (kHq / kHkv)) * kDim;
    const double p =
        std::exp(kScale * std::inner_product(q, q + kDim, &s.k[at], 0.0, std::plus(), times));
    sum += p;
    for (int64_t d = 0; d < kDim; ++d) out[d] += p * s.v[at + d];
  }
  for (double& x : out) x /= sum;
  return out;
}

int main() {
  Sequence sequences[] = {{{0, 1, 2, 3, 4, 5}, 0, {}, {}, {}},
                          {{40, 41, 42, 43, 20, 21, 22}, 4, {}, {}, {}},
                          {{50, 51, 52, 53, 54, 55, 56, 57, 58}, 8, {}, {}, {}}};
  const auto kernels = make_reference_kernels();
  KVPool pool(*kernels, {.num_layers = 1, .num_pages = 64, .num_kv_heads = kHkv, .head_dim = kDim});
  const Tensor table = Tensor::zeros(DType::kInt32, {3, kTableWidth});

  // The scheduler's part: rows of the page table, requests, and the new tokens packed end to end.
  std::mt19937 generator(0);
  std::vector<Req> reqs(3);
  std::vector<float> q, k, v;
  std::vector<int32_t> out_loc;
  Batch batch;
  for (int r = 0; r < 3; ++r) {
    Sequence& s = sequences[r];
    const size_t length = s.locations.size();
    s.q = randoms(length * kHq * kDim, generator);
    s.k = randoms(length * kHkv * kDim, generator);
    s.v = randoms(length * kHkv * kDim, generator);
    std::ranges::copy(s.locations, table.view().select(r).data<int32_t>());
    reqs[r].table_idx = r;
    reqs[r].cached_len = s.cached;
    reqs[r].device_len = int64_t(length);
    batch.reqs.push_back(&reqs[r]);
    if (s.cached > 0) {  // computed by earlier steps
      pool.store(heads(s.k, kHkv).slice(0, s.cached), heads(s.v, kHkv).slice(0, s.cached),
                 TensorView::of(std::span(s.locations).first(s.cached)), 0);
    }
    q.insert(q.end(), s.q.begin() + s.cached * kHq * kDim, s.q.end());
    k.insert(k.end(), s.k.begin() + s.cached * kHkv * kDim, s.k.end());
    v.insert(v.end(), s.v.begin() + s.cached * kHkv * kDim, s.v.end());
    out_loc.insert(out_loc.end(), s.locations.begin() + s.cached, s.locations.end());
  }
  batch.padded_reqs = batch.reqs;
  batch.out_loc = TensorView::of(std::span(out_loc));
  batch.page_table = table;

  // The engine's part: metadata once a batch, attention once a layer.
  const auto backend = create_attention_backend("reference", {}, *kernels, pool);
  backend->prepare_metadata(batch);
  std::vector<float> out(q.size());
  AttentionSpec spec;
  spec.num_qo_heads = kHq;
  spec.num_kv_heads = kHkv;
  spec.head_dim = kDim;
  spec.scale = kScale;
  backend->forward(heads(out, kHq), heads(q, kHq), heads(k, kHkv), heads(v, kHkv), spec, batch);

  double error = 0;
  const float* row = out.data();
  for (const Sequence& s : sequences) {
    for (int64_t p = s.cached; p < int64_t(s.locations.size()); ++p) {
      for (int64_t h = 0; h < kHq; ++h) {
        for (const double x : complete_attention(s, p, h)) {
          error = std::max(error, std::abs(x - *row++));
        }
      }
    }
  }

  const AttentionMetadata& metadata = *batch.attn_metadata;
  std::vector<std::vector<int32_t>> rows;
  for (int r = 0; r < 3; ++r) {
    const auto begin = metadata.page_table.begin() + r * metadata.max_seqlen_k;
    rows.emplace_back(begin, begin + metadata.max_seqlen_k);
  }
  std::vector<int32_t> last;
  metadata.last_indices(last, batch.size());
  fmt::print("cu_seqlens_q : {}\n", metadata.cu_seqlens_q);
  fmt::print("cache_seqlens: {}\n", metadata.cache_seqlens);
  fmt::print("page_table   : {}\n", rows);
  fmt::print("out_loc      : {}\n", out_loc);
  fmt::print("last indices : {}\n", last);
  fmt::print("max error against complete causal attention: {} 1e-6 (float32)\n",
             error < 1e-6 ? "below" : "NOT below");
  fmt::print("measured error: {:.2e}\n", error);
}
