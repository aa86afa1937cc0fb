#include "kvcache/kv_pool.h"

#include <limits>

#include "kernel/kernels.h"
#include "utils/error.h"
#include "utils/math.h"

namespace minisgl {
namespace {

// Locations are int32 everywhere, so that is what bounds a pool.
int64_t checked_locations(const KVPoolConfig& config) {
  MINISGL_CHECK(config.num_layers > 0 && config.num_kv_heads > 0 && config.head_dim > 0,
                "KV pool of {} layers, {} heads of {}", config.num_layers, config.num_kv_heads,
                config.head_dim);
  if (config.page_size < 1 || config.num_pages < 1) {
    throw_error(ErrorKind::kInvalidArgument,
                "KV pool of {} pages of {} tokens: both must be at least 1", config.num_pages,
                config.page_size);
  }
  constexpr int64_t kMaxLocations = std::numeric_limits<int32_t>::max();
  if (config.num_pages >= kMaxLocations / config.page_size) {
    throw_error(ErrorKind::kInvalidArgument,
                "KV pool of {} pages of {} tokens: at most {} tokens can be addressed; lower "
                "--num-pages",
                config.num_pages, config.page_size, kMaxLocations);
  }
  return (config.num_pages + 1) * config.page_size;
}

// Bytes of K (or V) of the whole pool must fit an int64.
void check_bytes(const KVPoolConfig& config, int64_t locations) {
  uint64_t bytes = static_cast<uint64_t>(block_bytes(config.dtype));
  for (const int64_t n : {locations, config.num_layers, config.num_kv_heads, config.head_dim}) {
    const auto product = checked_mul(bytes, static_cast<uint64_t>(n));
    if (!product || *product > std::numeric_limits<int64_t>::max() / 2) {
      throw_error(ErrorKind::kInvalidArgument,
                  "KV pool of {} pages of {} tokens is larger than any memory; lower --num-pages",
                  config.num_pages, config.page_size);
    }
    bytes = *product;
  }
}

}  // namespace

KVPool::KVPool(Kernels& kernels, const KVPoolConfig& config) : kernels_(kernels), config_(config) {
  const int64_t locations = checked_locations(config);
  check_bytes(config, locations);
  const int64_t shape[] = {config.num_layers, locations, config.num_kv_heads, config.head_dim};
  k_ = kernels.allocate(config.dtype, shape);
  v_ = kernels.allocate(config.dtype, shape);
}

TensorView KVPool::k(int layer) const { return k_.view().select(layer); }
TensorView KVPool::v(int layer) const { return v_.view().select(layer); }

void KVPool::store(TensorView k, TensorView v, TensorView out_loc, int layer) {
  for (const TensorView& rows : {k, v}) {
    MINISGL_CHECK(rows.rank() == 3 && rows.dim(0) == out_loc.dim(0) &&
                      rows.dim(1) == config_.num_kv_heads && rows.dim(2) == config_.head_dim,
                  "store: got {}, expected [{}, {}, {}]", rows.describe(), out_loc.dim(0),
                  config_.num_kv_heads, config_.head_dim);
  }
  kernels_.store_kv(this->k(layer), k, out_loc);
  kernels_.store_kv(this->v(layer), v, out_loc);
}

int64_t KVPool::bytes_per_page(const KVPoolConfig& config) {
  return 2 * config.num_layers * config.page_size *
         bytes_of(config.dtype, config.num_kv_heads * config.head_dim);
}

}  // namespace minisgl
