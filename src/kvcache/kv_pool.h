// The memory that holds every request's K and V.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tensor/tensor.h"

namespace minisgl {

class Kernels;

struct KVPoolConfig {
  int64_t num_layers = 0;
  int64_t num_pages = 0;  // usable ones; one more, the dummy page, is added
  int64_t page_size = 1;  // tokens
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  DType dtype = DType::kFloat32;
};

// K and V: [num_layers][num_pages + 1, page_size, Hkv, D]. A token's location is page * page_size +
// offset; the last page belongs to the dummy request that fills padded batches. Touched lazily on
// the CPU. One thread.
class KVPool {
 public:
  KVPool(Kernels& kernels, const KVPoolConfig& config);

  const KVPoolConfig& config() const { return config_; }
  std::string_view kv_layout() const { return "NHD"; }  // order inside a page: token, head, dim
  int64_t dummy_location() const { return config_.num_pages * config_.page_size; }

  // [locations, Hkv, D] of one layer, the dummy page included.
  TensorView k(int layer) const;
  TensorView v(int layer) const;

  // k, v: [T, Hkv, D] (rows may be strided), out_loc: [T] int32.
  void store(TensorView k, TensorView v, TensorView out_loc, int layer);

  static int64_t bytes_per_page(const KVPoolConfig& config);

 private:
  Kernels& kernels_;
  KVPoolConfig config_;
  Tensor k_, v_;  // [num_layers, locations, Hkv, D]
};

}  // namespace minisgl
