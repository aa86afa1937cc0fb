// Every operation of kernels.h as its equation says, in plain loops: the truth that the fast
// kernels are tested against. Never optimised.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "kernel/checks.h"
#include "kernel/dequantize.h"
#include "kernel/kernels.h"
#include "tensor/half.h"
#include "utils/arena.h"
#include "utils/error.h"

namespace minisgl {
namespace {

// Rows as the checkpoint holds them, plain ones rounded to the dtype of pack().
class ReferenceMatrix : public PackedMatrix {
 public:
  ReferenceMatrix(std::span<const RawMatrix> parts, DType dtype, int64_t rows, int64_t cols)
      : PackedMatrix(rows, cols), dtype_(dtype) {
    for (const RawMatrix& part : parts) {
      for (int64_t r = 0; r < part.rows; ++r) add_row(part, r);
    }
    std::vector<DType> dtypes;
    for (const Row& row : rows_) {
      if (dtypes.empty() || dtypes.back() != row.dtype) dtypes.push_back(row.dtype);
    }
    for (const DType d : dtypes) {
      if (!format_.empty()) format_ += '+';
      format_ += dtype_name(d);
    }
  }

  int64_t bytes() const override { return static_cast<int64_t>(data_.size()); }
  std::string format() const override { return format_; }

  // out: [cols]
  void row(float* out, int64_t r) const {
    const Row& row = rows_[static_cast<size_t>(r)];
    dequantize(out, data_.data() + row.offset, row.dtype, cols());
    if (is_floating(row.dtype)) {
      for (int64_t i = 0; i < cols(); ++i) out[i] = rounded(out[i]);
    }
  }

 private:
  struct Row {
    DType dtype;
    size_t offset;
  };

  void add_row(const RawMatrix& part, int64_t r) {
    rows_.push_back({part.dtype, data_.size()});
    const std::byte* bytes = part.row(r);
    data_.insert(data_.end(), bytes, bytes + part.row_bytes());
  }
  float rounded(float value) const {
    if (dtype_ == DType::kBFloat16) return bfloat16_to_float(float_to_bfloat16(value));
    if (dtype_ == DType::kFloat16) return half_to_float(float_to_half(value));
    return value;
  }

  DType dtype_;
  std::vector<std::byte> data_;
  std::vector<Row> rows_;
  std::string format_;
};

const ReferenceMatrix& reference(const PackedMatrix& w) {
  const auto* matrix = dynamic_cast<const ReferenceMatrix*>(&w);
  MINISGL_CHECK(matrix != nullptr, "a matrix was packed by another device's kernels");
  return *matrix;
}

// Start of row i (counted over all outer dimensions) of a view with rows along the last dimension.
float* row_of(const TensorView& view, int64_t i) {
  int64_t offset = 0;
  for (int d = view.rank() - 2; d >= 0; --d) {
    offset += i % view.dim(d) * view.stride(d);
    i /= view.dim(d);
  }
  return view.data<float>() + offset;
}
int64_t num_rows(const TensorView& view) {
  int64_t n = 1;
  for (int d = 0; d + 1 < view.rank(); ++d) n *= view.dim(d);
  return n;
}

// Element i of memory in any float dtype.
float load(const TensorView& view, int64_t i) {
  switch (view.dtype()) {
    case DType::kFloat16:
      return half_to_float(static_cast<const uint16_t*>(view.raw())[i]);
    case DType::kBFloat16:
      return bfloat16_to_float(static_cast<const uint16_t*>(view.raw())[i]);
    default:
      return static_cast<const float*>(view.raw())[i];
  }
}
void save(const TensorView& view, int64_t i, float value) {
  switch (view.dtype()) {
    case DType::kFloat16:
      static_cast<uint16_t*>(view.raw())[i] = float_to_half(value);
      return;
    case DType::kBFloat16:
      static_cast<uint16_t*>(view.raw())[i] = float_to_bfloat16(value);
      return;
    default:
      static_cast<float*>(view.raw())[i] = value;
  }
}

float silu(float z) { return z / (1.0f + std::exp(-z)); }

// 0.5 z (1 + tanh(sqrt(2 / pi) (z + 0.044715 z^3)))            (Hendrycks & Gimpel 2016)
float gelu_tanh(float z) {
  return 0.5f * z * (1.0f + std::tanh(0.7978845608f * (z + 0.044715f * z * z * z)));
}

// head: [R or more], cosines and sines of one position: [R / 2] each
void rotate(float* head, const float* cosines, const float* sines, int64_t half) {
  for (int64_t i = 0; i < half; ++i) {
    const float a = head[i];
    const float b = head[i + half];
    head[i] = a * cosines[i] - b * sines[i];
    head[i + half] = b * cosines[i] + a * sines[i];
  }
}

// One query head's attention: scores of all keys that it sees, softmax, weighted sum. Scores stay
// in double: in float32 one of 4000 is off by 1e-4, and its weight by as much.
void attend(const PagedAttentionArgs& args, int64_t request, int64_t token, int64_t head,
            int64_t position) {
  const int64_t dim = args.q.dim(2);
  const int64_t group = args.q.dim(1) / args.k_pool.dim(1);
  const float* q = args.q.data<float>() + token * args.q.stride(0) + head * args.q.stride(1);
  float* out = args.out.data<float>() + token * args.out.stride(0) + head * args.out.stride(1);
  const int32_t* pages = args.page_table.data<int32_t>() + request * args.page_table.stride(0);
  const int64_t first = args.window > 0 ? std::max<int64_t>(0, position - args.window + 1) : 0;
  const float sink =
      args.sinks.empty() ? -std::numeric_limits<float>::infinity() : args.sinks.data<float>()[head];

  std::vector<double> scores;
  for (int64_t j = first; j <= position; ++j) {
    checks::index_below("paged_attention", pages[j], args.k_pool.dim(0));
    const int64_t k = pages[j] * args.k_pool.stride(0) + head / group * args.k_pool.stride(1);
    double dot = 0.0;
    for (int64_t d = 0; d < dim; ++d) dot += double{q[d]} * load(args.k_pool, k + d);
    double score = args.scale * dot;
    if (args.softcap > 0) score = args.softcap * std::tanh(score / args.softcap);
    scores.push_back(score);
  }

  const double max = std::max(double{sink}, *std::max_element(scores.begin(), scores.end()));
  float sum = static_cast<float>(std::exp(sink - max));
  std::fill(out, out + dim, 0.0f);
  for (int64_t j = first; j <= position; ++j) {
    const auto p = static_cast<float>(std::exp(scores[static_cast<size_t>(j - first)] - max));
    const int64_t v = pages[j] * args.v_pool.stride(0) + head / group * args.v_pool.stride(1);
    for (int64_t d = 0; d < dim; ++d) out[d] += p * load(args.v_pool, v + d);
    sum += p;
  }
  for (int64_t d = 0; d < dim; ++d) out[d] /= sum;
  if (!args.lse.empty()) {
    args.lse.data<float>()[token * args.lse.stride(0) + head] =
        static_cast<float>(max + std::log(sum));
  }
}

class ReferenceKernels : public Kernels {
 public:
  Device device() const override { return Device::cpu(); }
  std::string description() const override { return "reference, 1 thread"; }

  Tensor allocate(DType dtype, std::span<const int64_t> shape) override {
    return Tensor::zeros(dtype, shape);
  }

  void copy(TensorView dst, TensorView src) override {
    MINISGL_CHECK(dst.dtype() == src.dtype() && dst.numel() == src.numel() && dst.is_contiguous() &&
                      src.is_contiguous() && dst.device().is_cpu() && src.device().is_cpu(),
                  "copy of {} to {}", src.describe(), dst.describe());
    if (dst.bytes() > 0) {
      std::memcpy(dst.raw(), src.raw(), static_cast<size_t>(dst.bytes()));
    }
  }

  void synchronize() override {}

  std::unique_ptr<PackedMatrix> pack(std::span<const RawMatrix> parts, DType dtype) override {
    const int64_t cols = checks::pack(parts, dtype);
    int64_t rows = 0;
    for (const RawMatrix& part : parts) rows += part.rows;
    return std::make_unique<ReferenceMatrix>(parts, dtype, rows, cols);
  }

  Tensor load_float(const RawMatrix& values) override {
    Tensor tensor = values.rows == 1 ? Tensor::zeros(DType::kFloat32, {values.cols})
                                     : Tensor::zeros(DType::kFloat32, {values.rows, values.cols});
    for (int64_t r = 0; r < values.rows; ++r) {
      dequantize(tensor.view().data<float>() + r * values.cols, values.row(r), values.dtype,
                 values.cols);
    }
    return tensor;
  }

  void embedding(TensorView out, TensorView ids, const PackedMatrix& table) override {
    checks::embedding(out, ids, table);
    for (int64_t t = 0; t < out.dim(0); ++t) {
      const int32_t id = ids.data<int32_t>()[t];
      checks::index_below("embedding", id, table.rows());
      reference(table).row(row_of(out, t), id);
    }
  }

  void linear(TensorView y, TensorView x, const PackedMatrix& w, TensorView bias) override {
    checks::linear(y, x, w, bias);
    std::vector<float> row(static_cast<size_t>(w.cols()));
    for (int64_t n = 0; n < w.rows(); ++n) {
      reference(w).row(row.data(), n);
      for (int64_t t = 0; t < x.dim(0); ++t) {
        float sum = 0.0f;
        for (int64_t k = 0; k < w.cols(); ++k) sum += row_of(x, t)[k] * row[static_cast<size_t>(k)];
        row_of(y, t)[n] = bias.empty() ? sum : sum + bias.data<float>()[n];
      }
    }
  }

  void rms_norm(TensorView y, TensorView x, TensorView w, float eps) override {
    checks::rms_norm(y, x, w);
    const int64_t dim = x.dim(-1);
    for (int64_t r = 0; r < num_rows(x); ++r) {
      const float* in = row_of(x, r);
      float sum = 0.0f;
      for (int64_t i = 0; i < dim; ++i) sum += in[i] * in[i];
      const float scale = 1.0f / std::sqrt(sum / static_cast<float>(dim) + eps);
      float* out = row_of(y, r);
      for (int64_t i = 0; i < dim; ++i) out[i] = w.data<float>()[i] * (in[i] * scale);
    }
  }

  void add_rms_norm(TensorView y, TensorView x, TensorView addend, TensorView w,
                    float eps) override {
    checks::add_rms_norm(y, x, addend, w);
    add(x, addend);
    rms_norm(y, x, w, eps);
  }

  void add(TensorView x, TensorView addend) override {
    checks::add(x, addend);
    for (int64_t t = 0; t < x.dim(0); ++t) {
      for (int64_t i = 0; i < x.dim(1); ++i) row_of(x, t)[i] += row_of(addend, t)[i];
    }
  }

  void rope(TensorView q, TensorView k, TensorView positions, TensorView cos_sin) override {
    checks::rope(q, k, positions, cos_sin);
    const int64_t half = cos_sin.dim(1) / 2;
    for (int64_t t = 0; t < q.dim(0); ++t) {
      const int32_t position = positions.data<int32_t>()[t];
      checks::index_below("rope", position, cos_sin.dim(0));
      const float* cosines = row_of(cos_sin, position);
      for (int64_t h = 0; h < q.dim(1); ++h) {
        rotate(row_of(q, t * q.dim(1) + h), cosines, cosines + half, half);
      }
      for (int64_t h = 0; h < k.dim(1); ++h) {
        rotate(row_of(k, t * k.dim(1) + h), cosines, cosines + half, half);
      }
    }
  }

  void silu_mul(TensorView y, TensorView gate_up) override {
    checks::gated("silu_mul", y, gate_up);
    gate(y, gate_up, silu);
  }

  void gelu_mul(TensorView y, TensorView gate_up) override {
    checks::gated("gelu_mul", y, gate_up);
    gate(y, gate_up, gelu_tanh);
  }

  void softcap(TensorView x, float cap) override {
    checks::softcap(x, cap);
    for (int64_t r = 0; r < num_rows(x); ++r) {
      float* row = row_of(x, r);
      for (int64_t i = 0; i < x.dim(-1); ++i) row[i] = cap * std::tanh(row[i] / cap);
    }
  }

  void store_kv(TensorView pool, TensorView rows, TensorView loc) override {
    checks::store_kv(pool, rows, loc);
    for (int64_t t = 0; t < rows.dim(0); ++t) {
      const int32_t location = loc.data<int32_t>()[t];
      checks::index_below("store_kv", location, pool.dim(0));
      for (int64_t h = 0; h < rows.dim(1); ++h) {
        const float* row = row_of(rows, t * rows.dim(1) + h);
        const int64_t at = location * pool.stride(0) + h * pool.stride(1);
        for (int64_t d = 0; d < rows.dim(2); ++d) save(pool, at + d, row[d]);
      }
    }
  }

  void paged_attention(const PagedAttentionArgs& args) override {
    checks::paged_attention(args);
    const auto cu = args.cu_seqlens_q.values<const int32_t>();
    for (size_t i = 0; i + 1 < cu.size(); ++i) {
      const int64_t kv_len = args.cache_seqlens.values<const int32_t>()[i];
      for (int32_t token = cu[i]; token < cu[i + 1]; ++token) {
        for (int64_t h = 0; h < args.q.dim(1); ++h) {
          attend(args, static_cast<int64_t>(i), token, h, kv_len - cu[i + 1] + token);
        }
      }
    }
  }

  void gather_rows(TensorView out, TensorView x, TensorView rows) override {
    checks::gather_rows(out, x, rows);
    for (int64_t i = 0; i < out.dim(0); ++i) {
      const int32_t row = rows.data<int32_t>()[i];
      checks::index_below("gather_rows", row, x.dim(0));
      std::copy_n(row_of(x, row), x.dim(1), row_of(out, i));
    }
  }

  void argmax(TensorView ids, TensorView logits) override {
    checks::argmax(ids, logits);
    for (int64_t b = 0; b < logits.dim(0); ++b) {
      const float* row = row_of(logits, b);
      ids.data<int32_t>()[b] =
          static_cast<int32_t>(std::max_element(row, row + logits.dim(1)) - row);
    }
  }

  void moe_route(TensorView experts, TensorView weights, TensorView logits,
                 bool normalize) override {
    checks::moe_route(experts, weights, logits);
    const int64_t num_experts = logits.dim(1);
    const int64_t top_k = weights.dim(1);
    for (int64_t t = 0; t < logits.dim(0); ++t) {
      const float* row = row_of(logits, t);
      const float max = *std::max_element(row, row + num_experts);
      std::vector<float> probs(static_cast<size_t>(num_experts));
      for (int64_t e = 0; e < num_experts; ++e) {
        probs[static_cast<size_t>(e)] = std::exp(row[e] - max);
      }
      const float sum = std::accumulate(probs.begin(), probs.end(), 0.0f);
      for (float& p : probs) p /= sum;

      float* chosen = row_of(weights, t);
      int32_t* ids = experts.data<int32_t>() + t * experts.stride(0);
      for (int64_t i = 0; i < top_k; ++i) {
        const auto best = std::max_element(probs.begin(), probs.end());
        ids[i] = static_cast<int32_t>(best - probs.begin());
        chosen[i] = *best;
        *best = -1.0f;
      }
      if (!normalize) continue;
      const float total = std::accumulate(chosen, chosen + top_k, 0.0f);
      for (int64_t i = 0; i < top_k; ++i) chosen[i] /= total;
    }
  }

  void moe_mlp(TensorView y, TensorView x, TensorView experts, TensorView weights,
               std::span<const std::unique_ptr<PackedMatrix>> gate_up,
               std::span<const std::unique_ptr<PackedMatrix>> down, Arena& arena) override {
    checks::moe_mlp(y, x, experts, weights, gate_up, down);
    const ArenaScope scope(arena);
    const int64_t hidden = x.dim(1);
    const int64_t intermediate = down[0]->cols();
    const auto scratch = [&arena](int64_t n) {
      return TensorView(arena.allocate(n * int64_t{sizeof(float)}), DType::kFloat32, {1, n});
    };
    const TensorView both = scratch(2 * intermediate);
    const TensorView activated = scratch(intermediate);
    const TensorView out = scratch(hidden);
    for (int64_t t = 0; t < x.dim(0); ++t) {
      std::fill_n(row_of(y, t), hidden, 0.0f);
      for (int64_t i = 0; i < experts.dim(1); ++i) {
        const int32_t e = experts.data<int32_t>()[t * experts.stride(0) + i];
        checks::index_below("moe_mlp", e, static_cast<int64_t>(down.size()));
        linear(both, x.slice(t, 1), *gate_up[static_cast<size_t>(e)], {});
        silu_mul(activated, both);
        linear(out, activated, *down[static_cast<size_t>(e)], {});
        const float weight = row_of(weights, t)[i];
        for (int64_t h = 0; h < hidden; ++h) row_of(y, t)[h] += weight * row_of(out, 0)[h];
      }
    }
  }

 private:
  template <class Activation>
  static void gate(TensorView y, TensorView gate_up, Activation activation) {
    for (int64_t t = 0; t < y.dim(0); ++t) {
      const float* row = row_of(gate_up, t);
      for (int64_t i = 0; i < y.dim(1); ++i) {
        row_of(y, t)[i] = activation(row[i]) * row[y.dim(1) + i];
      }
    }
  }
};

}  // namespace

std::unique_ptr<Kernels> make_reference_kernels() { return std::make_unique<ReferenceKernels>(); }

}  // namespace minisgl
