// The pages of the KV pool that nobody owns.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace minisgl {

// First in, first out, so that a page freed too early is not reused at once and tests can see the
// mistake. A page is named by its first location: page index * page_size. Allocates no memory after
// construction. One thread.
class PageAllocator {
 public:
  PageAllocator(int64_t num_pages, int64_t page_size);

  int64_t num_free() const { return num_free_; }
  int64_t num_pages() const { return static_cast<int64_t>(is_free_.size()); }
  // Appends `n` pages to `out`; false, and nothing changed, when there are fewer.
  bool try_allocate(int64_t n, std::vector<int32_t>& out);
  // Error (internal): a location that starts no page, or a page that is free already.
  void free(std::span<const int32_t> pages);
  bool is_free(int64_t page_index) const { return is_free_[static_cast<size_t>(page_index)]; }

 private:
  int64_t page_size_;
  std::vector<int32_t> ring_;  // free pages, oldest at head_
  std::vector<bool> is_free_;
  int64_t head_ = 0;
  int64_t num_free_ = 0;
};

}  // namespace minisgl
