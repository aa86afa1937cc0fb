// Requests over a paged pool on a GPU, with random K, V and queries in bfloat16, and their steps
// through any backend.
#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <random>
#include <vector>

#include "attention/backend.h"
#include "core/batch.h"
#include "kernel/kernels.h"
#include "kvcache/kv_pool.h"
#include "tensor/half.h"
#include "tensor/tensor.h"

namespace minisgl::testing {

inline void upload_bf16(Kernels& gpu, TensorView to, std::span<const float> values) {
  std::vector<uint16_t> bits(values.size());
  std::ranges::transform(values, bits.begin(), float_to_bfloat16);
  gpu.copy(to, TensorView(bits.data(), DType::kBFloat16, to.shape()));
  gpu.synchronize();
}
inline std::vector<float> download_bf16(Kernels& gpu, TensorView from) {
  std::vector<uint16_t> bits(static_cast<size_t>(from.numel()));
  gpu.copy(TensorView(bits.data(), DType::kBFloat16, from.shape()), from);
  gpu.synchronize();
  std::vector<float> values(bits.size());
  std::ranges::transform(bits, values.begin(), bfloat16_to_float);
  return values;
}
// Normal values; one block of random bits repeated, since a pool may be large.
inline void fill_normal(Kernels& gpu, TensorView to, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<uint16_t> block(size_t{1} << 20);
  for (uint16_t& x : block) x = float_to_bfloat16(normal(random));
  const TensorView flat = to.reshape({to.numel()});
  for (int64_t at = 0; at < flat.numel();) {
    // An odd length, so that no two tokens hold the same values at the same dimension.
    const int64_t n = std::min<int64_t>(flat.numel() - at, (1 << 20) - 77);
    gpu.copy(flat.slice(at, n), TensorView(block.data(), DType::kBFloat16, {n}));
    at += n;
  }
  gpu.synchronize();
}

// ‖got − expected‖ / ‖expected‖, NaN if any value is.
inline double relative_error(std::span<const float> got, std::span<const float> expected) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    difference += std::pow(double{got[i]} - expected[i], 2);
    norm += std::pow(double{expected[i]}, 2);
  }
  return std::sqrt(difference / norm);
}

struct GpuCase {
  std::string name;
  std::vector<int64_t> new_tokens, keys;  // a request each; keys include the new tokens
  int64_t num_qo_heads = 16, num_kv_heads = 8, head_dim = 128, page_size = 1;
  int64_t window = 0;
  float softcap = 0.0f;
  bool sinks = false;
};

// A case on the device: `layers` layers of pool, pages in random order, one batch.
class GpuWorld {
 public:
  GpuWorld(Kernels& gpu, const GpuCase& c, int64_t layers = 1)
      : gpu_(gpu), pool_(gpu, pool_config(c, layers)) {
    for (int layer = 0; layer < layers; ++layer) {
      fill_normal(gpu, pool_.k(layer), 2 * static_cast<uint32_t>(layer) + 1);
      fill_normal(gpu, pool_.v(layer), 2 * static_cast<uint32_t>(layer) + 2);
    }
    make_requests(c);
    const int64_t tokens = static_cast<int64_t>(out_loc_.size());
    qkv_ = gpu.allocate(
        DType::kBFloat16,
        std::vector<int64_t>{tokens, (c.num_qo_heads + 2 * c.num_kv_heads) * c.head_dim});
    fill_normal(gpu, qkv_, 99);
    out_ = gpu.allocate(DType::kBFloat16, std::vector<int64_t>{tokens, c.num_qo_heads, c.head_dim});
    spec_.num_qo_heads = c.num_qo_heads;
    spec_.num_kv_heads = c.num_kv_heads;
    spec_.head_dim = c.head_dim;
    spec_.scale = 1.0f / std::sqrt(static_cast<float>(c.head_dim));
    spec_.softcap = c.softcap;
    spec_.window = c.window;
    if (c.sinks) {
      std::vector<float> values(static_cast<size_t>(c.num_qo_heads));
      std::iota(values.begin(), values.end(), -2.0f);
      sinks_ = gpu.allocate(DType::kFloat32, std::vector<int64_t>{c.num_qo_heads});
      gpu.copy(sinks_, TensorView::of(std::span(values)));
      spec_.sinks = sinks_;
    }
  }

  Kernels& gpu() { return gpu_; }
  KVPool& pool() { return pool_; }
  Batch& batch() { return batch_; }
  TensorView out() const { return out_; }
  std::deque<Req>& requests() { return reqs_; }

  // One layer of a prepared batch. Q, K and V are columns of one tensor, as a fused qkv gives them.
  void forward(AttentionBackend& backend, int layer = 0) {
    AttentionSpec spec = spec_;
    spec.layer = layer;
    const int64_t q = spec.num_qo_heads * spec.head_dim, kv = spec.num_kv_heads * spec.head_dim;
    const TensorView all = qkv_;
    backend.forward(out_, all.columns(0, q).split_heads(spec.num_qo_heads, spec.head_dim),
                    all.columns(q, kv).split_heads(spec.num_kv_heads, spec.head_dim),
                    all.columns(q + kv, kv).split_heads(spec.num_kv_heads, spec.head_dim), spec,
                    batch_);
  }
  std::vector<float> run(AttentionBackend& backend) {
    upload_bf16(gpu_, out_, std::vector<float>(static_cast<size_t>(out_.view().numel()), NAN));
    backend.prepare_metadata(batch_);
    forward(backend);
    return download_bf16(gpu_, out_);
  }

 private:
  static KVPoolConfig pool_config(const GpuCase& c, int64_t layers) {
    int64_t pages = 3;
    for (const int64_t keys : c.keys) pages += (keys + c.page_size - 1) / c.page_size;
    return {.num_layers = layers,
            .num_pages = pages,
            .page_size = c.page_size,
            .num_kv_heads = c.num_kv_heads,
            .head_dim = c.head_dim,
            .dtype = DType::kBFloat16};
  }

  void make_requests(const GpuCase& c) {
    const auto bs = static_cast<int64_t>(c.keys.size());
    page_table_ = Tensor::zeros(DType::kInt32, {bs, std::ranges::max(c.keys)});
    std::vector<int32_t> pages(static_cast<size_t>(pool_.config().num_pages));
    std::iota(pages.begin(), pages.end(), 0);
    std::ranges::shuffle(pages, std::mt19937(7));
    size_t next = 0;
    for (size_t i = 0; i < c.keys.size(); ++i) {
      Req& req = reqs_.emplace_back();
      req.uid = static_cast<int64_t>(i);
      req.table_idx = static_cast<int32_t>(i);
      req.device_len = c.keys[i];
      req.cached_len = c.keys[i] - c.new_tokens[i];
      req.max_device_len = c.keys[i] + 1;
      int32_t* row = page_table_.view().select(req.table_idx).data<int32_t>();
      for (int64_t p = 0; p < c.keys[i]; ++p) {
        if (p % c.page_size == 0) ++next;
        row[p] = pages[next - 1] * static_cast<int32_t>(c.page_size) +
                 static_cast<int32_t>(p % c.page_size);
      }
      out_loc_.insert(out_loc_.end(), row + req.cached_len, row + req.device_len);
    }
    for (Req& req : reqs_) {
      batch_.reqs.push_back(&req);
      batch_.padded_reqs.push_back(&req);
    }
    batch_.phase = std::ranges::max(c.new_tokens) > 1 ? Phase::kPrefill : Phase::kDecode;
    device_loc_ =
        gpu_.allocate(DType::kInt32, std::vector<int64_t>{static_cast<int64_t>(out_loc_.size())});
    gpu_.copy(device_loc_, TensorView::of(std::span(out_loc_)));
    batch_.input_ids = batch_.out_loc = device_loc_;
    batch_.page_table = page_table_;
  }

  Kernels& gpu_;
  KVPool pool_;
  AttentionSpec spec_;
  Tensor page_table_, qkv_, out_, sinks_, device_loc_;
  std::vector<int32_t> out_loc_;
  std::deque<Req> reqs_;
  Batch batch_;
};

}  // namespace minisgl::testing
