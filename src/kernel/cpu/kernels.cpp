// The CPU's Kernels: checks shapes, splits rows over the threads, calls the table.
#include "kernel/kernels.h"

#include <fmt/format.h>

#include <cstring>

#include "kernel/checks.h"
#include "kernel/cpu/attention.h"
#include "kernel/cpu/gemm/gemm.h"
#include "kernel/cpu/isas.h"
#include "kernel/cpu/moe.h"
#include "kernel/dequantize.h"
#include "utils/error.h"

namespace minisgl {
namespace {

using cpu::panels;

// The rows along the last dimension of a view of any rank, counted over all outer dimensions.
class Rows {
 public:
  explicit Rows(const TensorView& view) : view_(view), data_(view.data<float>()) {
    for (int d = 0; d + 1 < view.rank(); ++d) count_ *= view.dim(d);
  }
  int64_t count() const { return count_; }
  float* operator[](int64_t i) const {
    int64_t offset = 0;
    for (int d = view_.rank() - 2; d >= 0; --d) {
      offset += i % view_.dim(d) * view_.stride(d);
      i /= view_.dim(d);
    }
    return data_ + offset;
  }

 private:
  TensorView view_;
  float* data_;
  int64_t count_ = 1;
};

class CpuKernels : public Kernels {
 public:
  CpuKernels(ThreadPool& threads, const cpu::Table& table)
      : table_(table),
        team_(threads),
        gemm_(table, team_),
        attention_(table, team_),
        moe_(table, team_, gemm_) {}

  Device device() const override { return Device::cpu(); }
  std::string description() const override {
    return fmt::format("cpu {}, {} thread{}", table_.isa, team_.size(),
                       team_.size() == 1 ? "" : "s");
  }

  Tensor allocate(DType dtype, std::span<const int64_t> shape) override {
    return Tensor::zeros(dtype, shape);
  }

  void copy(TensorView dst, TensorView src) override {
    MINISGL_CHECK(dst.dtype() == src.dtype() && dst.numel() == src.numel() && dst.is_contiguous() &&
                      src.is_contiguous() && dst.device().is_cpu() && src.device().is_cpu(),
                  "copy of {} to {}", src.describe(), dst.describe());
    if (dst.bytes() > 0) std::memcpy(dst.raw(), src.raw(), static_cast<size_t>(dst.bytes()));
  }

  void synchronize() override {}

  std::unique_ptr<PackedMatrix> pack(std::span<const RawMatrix> parts, DType dtype) override {
    checks::pack(parts, dtype);
    return std::make_unique<cpu::PanelMatrix>(parts, dtype, team_.threads());
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
    const int32_t* tokens = ids.data<int32_t>();
    for (int64_t t = 0; t < out.dim(0); ++t) {
      checks::index_below("embedding", tokens[t], table.rows());
    }
    const Rows rows(out);
    team_.for_rows(rows.count(), 4 * table.cols(),
                   [&](int64_t t) { panels(table).row(rows[t], tokens[t]); });
  }

  void linear(TensorView y, TensorView x, const PackedMatrix& w, TensorView bias) override {
    checks::linear(y, x, w, bias);
    gemm_(y.data<float>(), y.stride(0), x.data<float>(), x.stride(0), x.dim(0), panels(w),
          bias.empty() ? nullptr : bias.data<float>());
  }

  void rms_norm(TensorView y, TensorView x, TensorView w, float eps) override {
    checks::rms_norm(y, x, w);
    const Rows out(y);
    const Rows in(x);
    const int64_t n = x.dim(-1);
    const float* weights = w.data<float>();
    team_.for_rows(in.count(), n,
                   [&](int64_t r) { table_.rms_norm(out[r], in[r], weights, n, eps); });
  }

  void add_rms_norm(TensorView y, TensorView x, TensorView addend, TensorView w,
                    float eps) override {
    checks::add_rms_norm(y, x, addend, w);
    const Rows out(y);
    const Rows in(x);
    const Rows more(addend);
    const int64_t n = x.dim(1);
    const float* weights = w.data<float>();
    team_.for_rows(in.count(), n, [&](int64_t r) {
      table_.add_rms_norm(out[r], in[r], more[r], weights, n, eps);
    });
  }

  void add(TensorView x, TensorView addend) override {
    checks::add(x, addend);
    const Rows in(x);
    const Rows more(addend);
    team_.for_rows(in.count(), x.dim(1), [&](int64_t r) { table_.add(in[r], more[r], x.dim(1)); });
  }

  void rope(TensorView q, TensorView k, TensorView positions, TensorView cos_sin) override {
    checks::rope(q, k, positions, cos_sin);
    const int64_t half = cos_sin.dim(1) / 2;
    const int32_t* at = positions.data<int32_t>();
    for (int64_t t = 0; t < q.dim(0); ++t) checks::index_below("rope", at[t], cos_sin.dim(0));
    const float* angles = cos_sin.data<float>();
    const auto rotate = [&](const TensorView& heads, int64_t t, const float* cosines) {
      float* head = heads.data<float>() + t * heads.stride(0);
      for (int64_t h = 0; h < heads.dim(1); ++h, head += heads.stride(1)) {
        table_.rope(head, cosines, cosines + half, half);
      }
    };
    team_.for_rows(q.dim(0), (q.dim(1) + k.dim(1)) * half, [&](int64_t t) {
      const float* cosines = angles + at[t] * cos_sin.stride(0);
      rotate(q, t, cosines);
      rotate(k, t, cosines);
    });
  }

  void silu_mul(TensorView y, TensorView gate_up) override {
    checks::gated("silu_mul", y, gate_up);
    gated(table_.silu_mul, y, gate_up);
  }
  void gelu_mul(TensorView y, TensorView gate_up) override {
    checks::gated("gelu_mul", y, gate_up);
    gated(table_.gelu_mul, y, gate_up);
  }

  void softcap(TensorView x, float cap) override {
    checks::softcap(x, cap);
    const Rows rows(x);
    const int64_t n = x.dim(-1);
    team_.for_rows(rows.count(), 8 * n, [&](int64_t r) { table_.softcap(rows[r], cap, n); });
  }

  void store_kv(TensorView pool, TensorView rows, TensorView loc) override {
    checks::store_kv(pool, rows, loc);
    const int32_t* at = loc.data<int32_t>();
    for (int64_t t = 0; t < rows.dim(0); ++t) checks::index_below("store_kv", at[t], pool.dim(0));
    const Rows heads(rows);
    const int64_t num_heads = rows.dim(1);
    // Split by heads, since two rows may go to one location (padding does).
    team_.for_rows(num_heads, rows.dim(0) * rows.dim(2), [&](int64_t h) {
      for (int64_t t = 0; t < rows.dim(0); ++t) {
        store_head(pool, at[t] * pool.stride(0) + h * pool.stride(1), heads[t * num_heads + h],
                   rows.dim(2));
      }
    });
  }

  void paged_attention(const PagedAttentionArgs& args) override { attention_(args); }

  void gather_rows(TensorView out, TensorView x, TensorView rows) override {
    checks::gather_rows(out, x, rows);
    const int32_t* ids = rows.data<int32_t>();
    const Rows from(x);
    const Rows to(out);
    for (int64_t i = 0; i < to.count(); ++i) checks::index_below("gather_rows", ids[i], x.dim(0));
    const auto bytes = static_cast<size_t>(x.dim(1)) * sizeof(float);
    team_.for_rows(to.count(), x.dim(1),
                   [&](int64_t i) { std::memcpy(to[i], from[ids[i]], bytes); });
  }

  void argmax(TensorView ids, TensorView logits) override {
    checks::argmax(ids, logits);
    const Rows rows(logits);
    int32_t* out = ids.data<int32_t>();
    team_.for_rows(rows.count(), logits.dim(1), [&](int64_t b) {
      out[b] = static_cast<int32_t>(table_.argmax(rows[b], logits.dim(1)));
    });
  }

  void moe_route(TensorView experts, TensorView weights, TensorView logits,
                 bool normalize) override {
    moe_.route(experts, weights, logits, normalize);
  }

  void moe_mlp(TensorView y, TensorView x, TensorView experts, TensorView weights,
               std::span<const std::unique_ptr<PackedMatrix>> gate_up,
               std::span<const std::unique_ptr<PackedMatrix>> down, Arena& arena) override {
    moe_.mlp(y, x, experts, weights, gate_up, down, arena);
  }

 private:
  using Gated = void (*)(float*, const float*, const float*, int64_t);
  void gated(Gated kernel, TensorView y, TensorView gate_up) const {
    const Rows out(y);
    const Rows in(gate_up);
    const int64_t n = y.dim(1);
    team_.for_rows(out.count(), 8 * n, [&](int64_t t) { kernel(out[t], in[t], in[t] + n, n); });
  }

  void store_head(const TensorView& pool, int64_t at, const float* row, int64_t n) const {
    if (pool.dtype() == DType::kFloat32) {
      std::memcpy(pool.data<float>() + at, row, static_cast<size_t>(n) * sizeof(float));
    } else if (pool.dtype() == DType::kBFloat16) {
      table_.to_bf16(static_cast<uint16_t*>(pool.raw()) + at, row, n);
    } else {
      table_.to_half(static_cast<uint16_t*>(pool.raw()) + at, row, n);
    }
  }

  const cpu::Table& table_;
  cpu::Team team_;
  cpu::Gemm gemm_;
  cpu::Attention attention_;
  cpu::Moe moe_;
};

}  // namespace

std::unique_ptr<Kernels> make_cpu_kernels(ThreadPool& threads, const std::string& isa) {
  return std::make_unique<CpuKernels>(threads, cpu::find_table(isa));
}

}  // namespace minisgl
