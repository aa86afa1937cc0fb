// Bump allocator for a step's activations: no allocation in the hot loop, fixed addresses.
#pragma once

#include <cstddef>
#include <cstdint>

#include "utils/error.h"
#include "utils/math.h"

namespace minisgl {

// Hands out pieces of memory that it does not own, in order; release() goes back to a mark. The
// same sequence of calls gives the same addresses every step. One thread.
class Arena {
 public:
  static constexpr int64_t kAlignment = 256;

  Arena() = default;
  Arena(void* memory, int64_t bytes) : base_(static_cast<std::byte*>(memory)), bytes_(bytes) {}

  void* allocate(int64_t bytes) {
    const int64_t begin = used_;
    used_ += align_up(bytes, kAlignment);
    if (used_ > peak_) peak_ = used_;
    MINISGL_CHECK(used_ <= bytes_, "activations need {} bytes, the arena has {}", used_, bytes_);
    return base_ + begin;
  }
  int64_t mark() const { return used_; }
  void release(int64_t mark) { used_ = mark; }
  int64_t peak_bytes() const { return peak_; }
  int64_t capacity_bytes() const { return bytes_; }

 private:
  std::byte* base_ = nullptr;
  int64_t bytes_ = 0;
  int64_t used_ = 0;
  int64_t peak_ = 0;
};

// What is allocated while it lives is given back when it ends.
class ArenaScope {
 public:
  explicit ArenaScope(Arena& arena) : arena_(arena), mark_(arena.mark()) {}
  ~ArenaScope() { arena_.release(mark_); }
  ArenaScope(const ArenaScope&) = delete;
  ArenaScope& operator=(const ArenaScope&) = delete;

 private:
  Arena& arena_;
  int64_t mark_;
};

}  // namespace minisgl
