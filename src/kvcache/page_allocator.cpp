#include "kvcache/page_allocator.h"

#include "utils/error.h"

namespace minisgl {

PageAllocator::PageAllocator(int64_t num_pages, int64_t page_size)
    : page_size_(page_size),
      ring_(static_cast<size_t>(num_pages)),
      is_free_(static_cast<size_t>(num_pages), true),
      num_free_(num_pages) {
  for (int64_t page = 0; page < num_pages; ++page) {
    ring_[static_cast<size_t>(page)] = static_cast<int32_t>(page * page_size);
  }
}

bool PageAllocator::try_allocate(int64_t n, std::vector<int32_t>& out) {
  if (n > num_free_) return false;
  for (int64_t i = 0; i < n; ++i) {
    const int32_t page = ring_[static_cast<size_t>(head_)];
    head_ = (head_ + 1) % num_pages();
    is_free_[static_cast<size_t>(page / page_size_)] = false;
    out.push_back(page);
  }
  num_free_ -= n;
  return true;
}

void PageAllocator::free(std::span<const int32_t> pages) {
  for (const int32_t page : pages) {
    const int64_t index = page / page_size_;
    MINISGL_CHECK(page >= 0 && page % page_size_ == 0 && index < num_pages(),
                  "location {} starts no page", page);
    MINISGL_CHECK(!is_free_[static_cast<size_t>(index)], "page {} is freed twice", index);
    is_free_[static_cast<size_t>(index)] = true;
    ring_[static_cast<size_t>((head_ + num_free_) % num_pages())] = page;
    ++num_free_;
  }
}

}  // namespace minisgl
