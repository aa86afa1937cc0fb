// Kernels that note what attention asks of them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernel/kernels.h"

namespace minisgl::testing {

// Counts calls, and can forget to store.
class WatchedKernels : public Kernels {
 public:
  explicit WatchedKernels(Kernels& inner) : inner_(inner) {}
  bool forget_store = false;
  std::vector<std::string> calls;

  void store_kv(TensorView pool, TensorView rows, TensorView loc) override {
    calls.push_back("store");
    if (!forget_store) inner_.store_kv(pool, rows, loc);
  }
  void paged_attention(const PagedAttentionArgs& args) override {
    calls.push_back("attend");
    inner_.paged_attention(args);
  }
  Device device() const override { return inner_.device(); }
  std::string description() const override { return inner_.description(); }
  Tensor allocate(DType dtype, std::span<const int64_t> shape) override {
    return inner_.allocate(dtype, shape);
  }
  void copy(TensorView dst, TensorView src) override { inner_.copy(dst, src); }
  void synchronize() override { inner_.synchronize(); }
  std::unique_ptr<PackedMatrix> pack(std::span<const RawMatrix> parts, DType dtype) override {
    return inner_.pack(parts, dtype);
  }
  Tensor load_float(const RawMatrix& values) override { return inner_.load_float(values); }
  void embedding(TensorView, TensorView, const PackedMatrix&) override { FAIL(); }
  void linear(TensorView, TensorView, const PackedMatrix&, TensorView) override { FAIL(); }
  void rms_norm(TensorView, TensorView, TensorView, float) override { FAIL(); }
  void add_rms_norm(TensorView, TensorView, TensorView, TensorView, float) override { FAIL(); }
  void add(TensorView, TensorView) override { FAIL(); }
  void rope(TensorView, TensorView, TensorView, TensorView) override { FAIL(); }
  void silu_mul(TensorView, TensorView) override { FAIL(); }
  void gelu_mul(TensorView, TensorView) override { FAIL(); }
  void softcap(TensorView, float) override { FAIL(); }
  void gather_rows(TensorView, TensorView, TensorView) override { FAIL(); }
  void argmax(TensorView, TensorView) override { FAIL(); }
  void moe_route(TensorView, TensorView, TensorView, bool) override { FAIL(); }
  void moe_mlp(TensorView, TensorView, TensorView, TensorView,
               std::span<const std::unique_ptr<PackedMatrix>>,
               std::span<const std::unique_ptr<PackedMatrix>>, Arena&) override {
    FAIL();
  }

 private:
  Kernels& inner_;
};

}  // namespace minisgl::testing
