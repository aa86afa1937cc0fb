// Requests with known Q, K and V over a paged pool, and what attention over them should give.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "attention/backend.h"
#include "core/batch.h"
#include "kernel/kernels.h"
#include "kvcache/kv_pool.h"
#include "tensor/tensor.h"

namespace minisgl::testing {

// A whole sequence's projections in one layer: q [len, Hq, D], k and v [len, Hkv, D].
struct Projections {
  std::vector<float> q, k, v;
};

inline std::vector<float> random_floats(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& x : values) x = normal(random);
  return values;
}

inline Projections random_projections(int64_t length, const AttentionSpec& spec, uint32_t seed) {
  const auto kv = static_cast<size_t>(length * spec.num_kv_heads * spec.head_dim);
  const auto q = static_cast<size_t>(length * spec.num_qo_heads * spec.head_dim);
  return {random_floats(q, 3 * seed), random_floats(kv, 3 * seed + 1),
          random_floats(kv, 3 * seed + 2)};
}

// Complete causal attention of one sequence's last `rows` positions, in double precision.
inline std::vector<float> dense_attention(const Projections& x, int64_t length, int64_t rows,
                                          const AttentionSpec& spec) {
  const int64_t hq = spec.num_qo_heads, hkv = spec.num_kv_heads, dim = spec.head_dim;
  std::vector<float> out;
  for (int64_t p = length - rows; p < length; ++p) {
    const int64_t first = spec.window > 0 ? std::max<int64_t>(0, p - spec.window + 1) : 0;
    for (int64_t h = 0; h < hq; ++h) {
      const float* q = &x.q[static_cast<size_t>((p * hq + h) * dim)];
      const auto key_at = [&](int64_t j) {
        return static_cast<size_t>((j * hkv + h / (hq / hkv)) * dim);
      };
      std::vector<double> scores;
      double top = spec.sinks.empty() ? -INFINITY : spec.sinks.data<float>()[h];
      for (int64_t j = first; j <= p; ++j) {
        double score = 0.0;
        for (int64_t d = 0; d < dim; ++d) {
          score += double{q[d]} * x.k[key_at(j) + static_cast<size_t>(d)];
        }
        score *= spec.scale;
        if (spec.softcap > 0) score = spec.softcap * std::tanh(score / spec.softcap);
        scores.push_back(score);
        top = std::max(top, score);
      }
      std::vector<double> sum(static_cast<size_t>(dim), 0.0);
      double denominator = spec.sinks.empty() ? 0.0 : std::exp(spec.sinks.data<float>()[h] - top);
      for (int64_t j = first; j <= p; ++j) {
        const size_t at = key_at(j);
        const double weight = std::exp(scores[static_cast<size_t>(j - first)] - top);
        denominator += weight;
        for (int64_t d = 0; d < dim; ++d) {
          sum[static_cast<size_t>(d)] += weight * x.v[at + static_cast<size_t>(d)];
        }
      }
      for (const double value : sum) out.push_back(static_cast<float>(value / denominator));
    }
  }
  return out;
}

inline float max_difference(std::span<const float> a, std::span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  float worst = 0.0f;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const float difference = std::abs(a[i] - b[i]);
    if (!(difference <= worst)) worst = difference;  // a NaN stays
  }
  return worst;
}

// A pool, a page table and requests in it. Pages are handed out in a shuffled order.
class PagedWorld {
 public:
  PagedWorld(Kernels& kernels, const AttentionSpec& spec, int64_t page_size, int64_t num_pages,
             int64_t max_requests, int64_t max_seq_len, DType pool_dtype = DType::kFloat32)
      : spec_(spec),
        pool_(kernels, {.num_layers = spec.layer + 1,
                        .num_pages = num_pages,
                        .page_size = page_size,
                        .num_kv_heads = spec.num_kv_heads,
                        .head_dim = spec.head_dim,
                        .dtype = pool_dtype}),
        page_table_(Tensor::zeros(DType::kInt32, {max_requests + 1, max_seq_len})) {
    free_pages_.resize(static_cast<size_t>(num_pages));
    std::iota(free_pages_.begin(), free_pages_.end(), 0);
    std::shuffle(free_pages_.begin(), free_pages_.end(), std::mt19937(7));
  }

  KVPool& pool() { return pool_; }
  TensorView page_table() const { return page_table_.view(); }
  const AttentionSpec& spec() const { return spec_; }

  // A request of the whole length's projections with pages for all of it, of which `cached` tokens
  // are in the pool.
  Req& add(const Projections& x, int64_t length, int64_t cached) {
    Req& req = reqs_.emplace_back();
    req.uid = static_cast<int64_t>(reqs_.size());
    req.table_idx = static_cast<int32_t>(reqs_.size() - 1);
    req.max_device_len = length + 1;
    req.device_len = length;
    int32_t* row = page_table_.view().select(req.table_idx).data<int32_t>();
    const int64_t page_size = pool_.config().page_size;
    for (int64_t p = 0; p < length; p += page_size) {
      const int32_t page = free_pages_.back();
      free_pages_.pop_back();
      for (int64_t i = 0; i < page_size && p + i < length; ++i) {
        row[p + i] = page * static_cast<int32_t>(page_size) + static_cast<int32_t>(i);
      }
    }
    projections_.push_back(x);
    if (cached > 0) store(req, 0, cached);
    req.cached_len = cached;
    return req;
  }

  // K and V of positions [begin, end) go to the pool, as an earlier step would have done.
  void store(const Req& req, int64_t begin, int64_t end) {
    std::vector<int32_t> loc(row(req).begin() + begin, row(req).begin() + end);
    pool_.store(rows_of(projections(req).k, spec_.num_kv_heads, begin, end),
                rows_of(projections(req).v, spec_.num_kv_heads, begin, end),
                TensorView::of(std::span(loc)), spec_.layer);
  }

  // The batch of these requests with its packed inputs; good until the next call.
  Batch& pack(const std::vector<Req*>& reqs, Phase phase) {
    q_.clear();
    k_.clear();
    v_.clear();
    out_loc_.clear();
    for (const Req* req : reqs) {
      const Projections& x = projections(*req);
      append(q_, x.q, spec_.num_qo_heads, *req);
      append(k_, x.k, spec_.num_kv_heads, *req);
      append(v_, x.v, spec_.num_kv_heads, *req);
      const std::span<const int32_t> cells = row(*req);
      out_loc_.insert(out_loc_.end(), cells.begin() + req->cached_len,
                      cells.begin() + req->device_len);
    }
    out_.assign(q_.size(), std::nanf(""));
    batch_.reqs = batch_.padded_reqs = reqs;
    batch_.phase = phase;
    batch_.input_ids = batch_.out_loc = TensorView::of(std::span(out_loc_));
    batch_.page_table = page_table_;
    return batch_;
  }

  // One step of one layer through `backend`; the output rows, packed.
  const std::vector<float>& run(AttentionBackend& backend, const std::vector<Req*>& reqs,
                                Phase phase) {
    backend.prepare_metadata(pack(reqs, phase));
    backend.forward(out(), q(), k(), v(), spec_, batch_);
    return out_;
  }

  // What run() should give.
  std::vector<float> expected(const std::vector<Req*>& reqs) const {
    std::vector<float> all;
    for (const Req* req : reqs) {
      const std::vector<float> rows =
          dense_attention(projections(*req), req->device_len, req->extend_len(), spec_);
      all.insert(all.end(), rows.begin(), rows.end());
    }
    return all;
  }

  TensorView q() { return heads(q_, spec_.num_qo_heads); }
  TensorView k() { return heads(k_, spec_.num_kv_heads); }
  TensorView v() { return heads(v_, spec_.num_kv_heads); }
  TensorView out() { return heads(out_, spec_.num_qo_heads); }
  Batch& batch() { return batch_; }
  std::span<const int32_t> row(const Req& req) const {
    return {page_table_.view().select(req.table_idx).data<int32_t>(),
            static_cast<size_t>(page_table_.view().dim(1))};
  }

 private:
  const Projections& projections(const Req& req) const {
    return projections_[static_cast<size_t>(req.table_idx)];
  }
  TensorView heads(std::vector<float>& values, int64_t n) {
    const int64_t rows = static_cast<int64_t>(values.size()) / (n * spec_.head_dim);
    return TensorView(values.data(), DType::kFloat32, {rows, n, spec_.head_dim});
  }
  TensorView rows_of(const std::vector<float>& values, int64_t n, int64_t begin, int64_t end) {
    return heads(const_cast<std::vector<float>&>(values), n).slice(begin, end - begin);
  }
  void append(std::vector<float>& to, const std::vector<float>& from, int64_t n, const Req& req) {
    const int64_t row = n * spec_.head_dim;
    to.insert(to.end(), from.begin() + req.cached_len * row, from.begin() + req.device_len * row);
  }

  AttentionSpec spec_;
  KVPool pool_;
  Tensor page_table_;
  std::vector<int32_t> free_pages_;
  std::deque<Req> reqs_;
  std::deque<Projections> projections_;
  Batch batch_;
  std::vector<float> q_, k_, v_, out_;
  std::vector<int32_t> out_loc_;
};

}  // namespace minisgl::testing
