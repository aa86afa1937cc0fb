#include "loader/stored_part.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace minisgl {
namespace {

constexpr std::string_view kExperts = ".experts.";

struct FusedName {
  std::string_view part, fused;
  StoredPart::Rows rows;
};
constexpr FusedName kFusedNames[] = {
    {".q_proj.", ".qkv_proj.", StoredPart::Rows::kQuery},
    {".k_proj.", ".qkv_proj.", StoredPart::Rows::kKey},
    {".v_proj.", ".qkv_proj.", StoredPart::Rows::kValue},
    {".gate_proj.", ".gate_up_proj.", StoredPart::Rows::kGate},
    {".up_proj.", ".gate_up_proj.", StoredPart::Rows::kUp},
};

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  return text.replace(text.rfind(from), from.size(), to);
}

// "x.experts.7.gate_proj.weight" -> 7 and "x.experts.gate_proj.weight".
std::optional<StoredPart> stack_of(const std::string& name) {
  const size_t at = name.find(kExperts);
  if (at == std::string::npos) return std::nullopt;
  const char* begin = name.data() + at + kExperts.size();
  const char* end = name.data() + name.size();
  int64_t expert = 0;
  const auto [after, error] = std::from_chars(begin, end, expert);
  if (error != std::errc() || after == end || *after != '.' || expert < 0) return std::nullopt;
  return StoredPart{name.substr(0, at + kExperts.size()) + std::string(after + 1, end), expert};
}

std::vector<int64_t> without_ones(std::vector<int64_t> shape) {
  std::erase(shape, 1);
  return shape;
}

// The first row of `part` in a stored matrix of `stored_rows` rows, when `rows` are wanted.
std::optional<int64_t> first_row(const StoredPart& part, int64_t stored_rows, int64_t rows,
                                 const FusedRows& fused) {
  const auto when = [](bool fits, int64_t row) {
    return fits ? std::optional<int64_t>(row) : std::nullopt;
  };
  const bool is_qkv = stored_rows == fused.query + 2 * fused.key;
  switch (part.rows) {
    case StoredPart::Rows::kAll:
      return when(stored_rows == rows, 0);
    case StoredPart::Rows::kQuery:
      return when(is_qkv && rows == fused.query, 0);
    case StoredPart::Rows::kKey:
      return when(is_qkv && rows == fused.key, fused.query);
    case StoredPart::Rows::kValue:
      return when(is_qkv && rows == fused.key, fused.query + fused.key);
    case StoredPart::Rows::kGate:
      return when(stored_rows == 2 * rows, 0);
    case StoredPart::Rows::kUp:
      return when(stored_rows == 2 * rows, rows);
  }
  return std::nullopt;
}

}  // namespace

std::vector<StoredPart> stored_parts(const std::string& name) {
  std::vector<StoredPart> parts = {{name}};
  if (auto stack = stack_of(name)) {
    parts.push_back(*stack);
    // Stacks are parameters of the experts' module itself: no ".weight" at the end.
    if (stack->tensor.ends_with(".weight")) {
      stack->tensor.resize(stack->tensor.size() - std::string_view(".weight").size());
      parts.push_back(*stack);
      stack->tensor += '.';  // so that the fused names below match
      for (const FusedName& fused : kFusedNames) {
        if (!stack->tensor.ends_with(fused.part)) continue;
        std::string tensor = replaced(stack->tensor, fused.part, fused.fused);
        tensor.pop_back();
        parts.push_back({tensor, stack->expert, fused.rows});
      }
    }
    return parts;
  }
  for (const FusedName& fused : kFusedNames) {
    if (name.find(fused.part) == std::string::npos) continue;
    parts.push_back({replaced(name, fused.part, fused.fused), -1, fused.rows});
  }
  return parts;
}

std::optional<int64_t> first_element(const StoredPart& part, std::vector<int64_t> shape,
                                     int64_t rows, int64_t cols, const FusedRows& fused) {
  if (part.expert >= 0) {
    if (shape.size() < 2 || part.expert >= shape.front()) return std::nullopt;
    shape.erase(shape.begin());
  }
  // Of one expert. Below 2^63, as the file's checks made sure, unless a dimension is 0: then this
  // may wrap, but nothing fits.
  uint64_t size = 1;
  for (const int64_t dim : shape) size *= static_cast<uint64_t>(dim);
  const auto base =
      static_cast<int64_t>(static_cast<uint64_t>(std::max<int64_t>(part.expert, 0)) * size);
  if (part.rows == StoredPart::Rows::kAll) {
    return without_ones(shape) == without_ones({rows, cols}) ? std::optional(base) : std::nullopt;
  }
  // A fused bias is a vector, whose elements stand for the rows.
  const bool is_vector = shape.size() == 1 && rows == 1;
  if (!is_vector && (shape.size() != 2 || shape[1] != cols)) return std::nullopt;
  const auto row = first_row(part, shape[0], is_vector ? cols : rows, fused);
  if (!row) return std::nullopt;
  return base + *row * (is_vector ? 1 : cols);
}

}  // namespace minisgl
