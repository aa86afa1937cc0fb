// Where a tensor of the one canonical set of names may lie inside a larger stored one.
//
// Models ask for q_proj, k_proj, v_proj, gate_proj, up_proj and for each expert by itself;
// checkpoints also keep them fused (qkv_proj, gate_up_proj) or all experts stacked in one tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace minisgl {

struct StoredPart {
  enum class Rows { kAll, kQuery, kKey, kValue, kGate, kUp };
  std::string tensor;      // the stored tensor's Hugging Face name
  int64_t expert = -1;     // >= 0: index into its outermost dimension
  Rows rows = Rows::kAll;  // which of the rows
  bool is_whole() const { return expert < 0 && rows == Rows::kAll; }
};

// Heads' rows in a fused qkv_proj.
struct FusedRows {
  int64_t query = 0;  // num_qo_heads * head_dim
  int64_t key = 0;    // num_kv_heads * head_dim, for value too
};

// The places to look for `name` (a full canonical name), the name itself first.
std::vector<StoredPart> stored_parts(const std::string& name);

// The index of the first element of `part` in a stored tensor of `shape` (outermost first, all >=
// 0), when rows x cols are wanted (a vector: rows = 1); they follow each other in memory. Empty:
// the stored tensor has not the shape that fits.
std::optional<int64_t> first_element(const StoredPart& part, std::vector<int64_t> shape,
                                     int64_t rows, int64_t cols, const FusedRows& fused);

}  // namespace minisgl
