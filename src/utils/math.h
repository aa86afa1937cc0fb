// Integer arithmetic that sizes and shapes need.
#pragma once

#include <cstdint>
#include <optional>

namespace minisgl {

constexpr int64_t div_ceil(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t align_up(int64_t a, int64_t b) { return div_ceil(a, b) * b; }
constexpr int64_t align_down(int64_t a, int64_t b) { return a / b * b; }

// Products and sums of sizes from a file: empty when they overflow.
inline std::optional<uint64_t> checked_mul(uint64_t a, uint64_t b) {
  uint64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}
inline std::optional<uint64_t> checked_add(uint64_t a, uint64_t b) {
  uint64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
  return result;
}

}  // namespace minisgl
