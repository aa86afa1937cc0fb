#include "scheduler/table.h"

#include <algorithm>

namespace minisgl {

TableManager::TableManager(TensorView token_pool, int64_t num_rows) : token_pool_(token_pool) {
  for (int64_t row = num_rows - 1; row >= 0; --row) {
    free_rows_.push_back(static_cast<int32_t>(row));
  }
}

int32_t TableManager::allocate() {
  MINISGL_CHECK(!free_rows_.empty());
  const int32_t row = free_rows_.back();
  free_rows_.pop_back();
  return row;
}

void TableManager::free(int32_t row) {
  MINISGL_DCHECK(std::find(free_rows_.begin(), free_rows_.end(), row) == free_rows_.end());
  free_rows_.push_back(row);
}

void TableManager::write_tokens(int32_t row, int64_t begin, std::span<const int32_t> tokens) {
  const TensorView cells = token_pool_.select(row);
  MINISGL_CHECK(begin + static_cast<int64_t>(tokens.size()) <= cells.dim(0));
  std::copy(tokens.begin(), tokens.end(), cells.data<int32_t>() + begin);
}

}  // namespace minisgl
