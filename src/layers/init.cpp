#include "layers/init.h"

#include <string>

namespace minisgl {
namespace {

std::string joined(std::string_view name, std::string_view leaf) {
  return std::string(name) + "." + std::string(leaf);
}

RawMatrix shard_of(const RawMatrix& whole, Split split, Shard shard) {
  if (shard.size == 1 || split == Split::kNone) return whole;
  const int64_t n = split == Split::kRows ? whole.rows : whole.cols;
  MINISGL_CHECK(n % shard.size == 0, "{} cannot be shared by {} ranks", n, shard.size);
  const int64_t count = n / shard.size;
  return split == Split::kRows ? whole.slice_rows(shard.rank * count, count)
                               : whole.slice_columns(shard.rank * count, count);
}

}  // namespace

std::unique_ptr<PackedMatrix> LayerInit::packed(std::vector<Part> parts, Split split) const {
  std::vector<RawMatrix> whole, shards;
  for (const Part& part : parts) {
    whole.push_back(weights_.matrix(joined(part.name, "weight"), part.rows, part.cols));
    shards.push_back(shard_of(whole.back(), split, shard_));
  }
  std::unique_ptr<PackedMatrix> result = kernels_->pack(shards, dtype_);
  for (const RawMatrix& matrix : whole) weights_.release(matrix);
  return result;
}

Tensor LayerInit::biases(std::vector<Part> parts, Split split) const {
  // A bias has one value an output row; row-parallel layers add theirs once, after the sum.
  std::vector<Tensor> loaded;
  int64_t total = 0;
  for (const Part& part : parts) {
    const RawMatrix whole = weights_.vector(joined(part.name, "bias"), part.rows);
    const RawMatrix mine = split == Split::kRows ? shard_of(whole, Split::kColumns, shard_) : whole;
    loaded.push_back(kernels_->load_float(mine));
    total += mine.cols;
  }
  if (loaded.size() == 1) return std::move(loaded.front());
  const int64_t shape[] = {total};
  Tensor all = kernels_->allocate(DType::kFloat32, shape);
  int64_t at = 0;
  for (const Tensor& bias : loaded) {
    const int64_t n = bias.view().numel();
    kernels_->copy(all.view().slice(at, n), bias.view().reshape({n}));
    at += n;
  }
  return all;
}

Tensor LayerInit::vector(std::string_view name, int64_t n) const {
  Tensor values = kernels_->load_float(weights_.vector(name, n));
  MINISGL_CHECK(values.view().numel() == n);
  return values;
}

}  // namespace minisgl
