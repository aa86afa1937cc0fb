// Rows of the page table and the token pool.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace minisgl {

// Free rows, last in first out. Thread: scheduler.
class TableManager {
 public:
  TableManager(TensorView token_pool, int64_t num_rows);

  bool has_free_row() const { return !free_rows_.empty(); }
  int64_t num_free() const { return static_cast<int64_t>(free_rows_.size()); }
  int32_t allocate();
  void free(int32_t row);
  // token_pool[row, begin …] = tokens
  void write_tokens(int32_t row, int64_t begin, std::span<const int32_t> tokens);

 private:
  TensorView token_pool_;
  std::vector<int32_t> free_rows_;
};

}  // namespace minisgl
