#include "scheduler/cache_manager.h"

#include <algorithm>

#include "utils/error.h"
#include "utils/math.h"

namespace minisgl {

CacheManager::CacheManager(int64_t num_pages, int64_t page_size, TensorView page_table,
                           std::unique_ptr<PrefixCache> cache)
    : page_size_(page_size),
      page_table_(page_table),
      cache_(std::move(cache)),
      allocator_(num_pages, page_size) {
  pages_.reserve(static_cast<size_t>(num_pages));
}

int64_t CacheManager::num_available_pages() const {
  return allocator_.num_free() + cache_->sizes().evictable_tokens / page_size_;
}

int64_t CacheManager::pages_for(int64_t tokens) const { return div_ceil(tokens, page_size_); }

std::span<int32_t> CacheManager::row(const Sequence& sequence) const {
  const TensorView cells = page_table_.select(sequence.req.table_idx);
  return {cells.data<int32_t>(), static_cast<size_t>(cells.dim(0))};
}

PrefixHandle CacheManager::match(const Sequence& sequence) {
  const std::vector<int32_t>& ids = sequence.req.input_ids;
  return cache_->match_prefix({ids.data(), static_cast<size_t>(sequence.matchable_len())},
                              sequence.cache_salt);
}

PrefixDivergence CacheManager::divergence(const Sequence& sequence,
                                          const PrefixHandle& match) const {
  const std::vector<int32_t>& ids = sequence.req.input_ids;
  return cache_->divergence(match, {ids.data(), static_cast<size_t>(sequence.matchable_len())},
                            sequence.cache_salt);
}

void CacheManager::adopt(Sequence& sequence, const PrefixHandle& match) {
  MINISGL_CHECK(sequence.allocated_len == 0 && sequence.prefix.length() == 0);
  sequence.prefix = PrefixLock(*cache_, match);
  if (match.length > 0) {
    cache_->locations(match, 0, row(sequence).first(static_cast<size_t>(match.length)));
  }
  sequence.allocated_len = match.length;
}

bool CacheManager::allocate(Sequence& sequence, int64_t length) {
  const int64_t missing = pages_for(length) - sequence.allocated_len / page_size_;
  if (missing <= 0) return true;
  if (missing > num_available_pages()) return false;
  const int64_t shortfall = missing - allocator_.num_free();
  if (shortfall > 0) {
    pages_.clear();
    cache_->evict(shortfall * page_size_, pages_);
    allocator_.free(pages_);
  }
  pages_.clear();
  MINISGL_CHECK(allocator_.try_allocate(missing, pages_), "eviction freed too little");
  const std::span<int32_t> cells = row(sequence);
  for (const int32_t first : pages_) {
    for (int64_t i = 0; i < page_size_; ++i) {
      cells[static_cast<size_t>(sequence.allocated_len++)] = first + static_cast<int32_t>(i);
    }
  }
  return true;
}

void CacheManager::free_pages_of_row(const Sequence& sequence, int64_t begin, int64_t end) {
  const std::span<const int32_t> cells = row(sequence);
  pages_.clear();
  for (int64_t at = begin; at < end; at += page_size_) {
    pages_.push_back(cells[static_cast<size_t>(at)]);
  }
  allocator_.free(pages_);
}

//   [0, old)              in the cache before, locked by us
//   [old, already)        another sequence inserted it meanwhile: free our copy, use the cache's
//   [already, inserted)   new: the cache owns it from here on
//   [inserted, …)         fills no page yet: stays ours
void CacheManager::insert(Sequence& sequence, int64_t length) {
  const int64_t whole = align_down(length, page_size_);
  const int64_t old = sequence.prefix.length();
  if (whole <= old) return;
  MINISGL_CHECK(whole <= sequence.computed_len && whole <= sequence.allocated_len);
  const auto count = static_cast<size_t>(whole);
  const std::span<int32_t> cells = row(sequence);
  const PrefixInsertion inserted = cache_->insert_prefix({sequence.req.input_ids.data(), count},
                                                         cells.first(count), sequence.cache_salt);
  if (inserted.handle.length <= old) return;  // a cache that keeps nothing
  PrefixLock lock(*cache_, inserted.handle);
  const int64_t already = std::min(inserted.already_cached, whole);
  if (already > old) {
    free_pages_of_row(sequence, old, already);
    cache_->locations(
        inserted.handle, old,
        cells.subspan(static_cast<size_t>(old), static_cast<size_t>(inserted.handle.length - old)));
  }
  sequence.prefix = std::move(lock);
}

void CacheManager::release(Sequence& sequence) {
  insert(sequence, sequence.computed_len);
  free_pages_of_row(sequence, sequence.prefix.length(), sequence.allocated_len);
  sequence.prefix = PrefixLock();
  sequence.allocated_len = 0;
  sequence.computed_len = 0;
}

int64_t CacheManager::flush() {
  pages_.clear();
  cache_->flush(pages_);
  allocator_.free(pages_);
  return static_cast<int64_t>(pages_.size());
}

PageCounts CacheManager::page_counts() const {
  const PrefixCacheSizes sizes = cache_->sizes();
  PageCounts counts;
  counts.page_size = page_size_;
  counts.total = allocator_.num_pages();
  counts.free = allocator_.num_free();
  counts.locked = sizes.protected_tokens / page_size_;
  counts.cached = counts.locked + sizes.evictable_tokens / page_size_;
  counts.owned = counts.total - counts.free - counts.cached;
  return counts;
}

void CacheManager::append_page_owners(std::span<const Sequence* const> sequences,
                                      std::vector<PageRun>& runs) const {
  std::vector<int64_t> owners(static_cast<size_t>(allocator_.num_pages()), PageRun::kFree);
  std::vector<int32_t> cached;
  cache_->append_pages(cached);
  for (const int32_t first : cached)
    owners[static_cast<size_t>(first / page_size_)] = PageRun::kCached;
  for (const Sequence* sequence : sequences) {
    const std::span<const int32_t> cells = row(*sequence);
    for (int64_t at = sequence->prefix.length(); at < sequence->allocated_len; at += page_size_) {
      owners[static_cast<size_t>(cells[static_cast<size_t>(at)] / page_size_)] = sequence->req.uid;
    }
  }
  for (size_t page = 0; page < owners.size(); ++page) {
    if (page == 0 || owners[page] != owners[page - 1]) {
      runs.push_back({.first_page = static_cast<int64_t>(page), .owner = owners[page]});
    }
    ++runs.back().num_pages;
  }
}

void CacheManager::check_integrity(std::span<const Sequence* const> sequences) const {
  cache_->check_integrity();
  std::vector<bool> owned(static_cast<size_t>(allocator_.num_pages()), false);
  int64_t num_owned = 0;
  for (const Sequence* sequence : sequences) {
    const std::span<const int32_t> cells = row(*sequence);
    for (int64_t at = sequence->prefix.length(); at < sequence->allocated_len; at += page_size_) {
      const int32_t first = cells[static_cast<size_t>(at)];
      const auto page = static_cast<size_t>(first / page_size_);
      MINISGL_CHECK(first % page_size_ == 0 && !owned[page], "request {}: page {} owned twice",
                    sequence->req.uid, page);
      MINISGL_CHECK(!allocator_.is_free(static_cast<int64_t>(page)), "request {}: page {} is free",
                    sequence->req.uid, page);
      owned[page] = true;
      ++num_owned;
    }
  }
  const PrefixCacheSizes sizes = cache_->sizes();
  const int64_t cached = (sizes.evictable_tokens + sizes.protected_tokens) / page_size_;
  MINISGL_CHECK(allocator_.num_free() + cached + num_owned == allocator_.num_pages(),
                "{} free + {} cached + {} owned pages are not {}", allocator_.num_free(), cached,
                num_owned, allocator_.num_pages());
  MINISGL_CHECK(!sequences.empty() || sizes.protected_tokens == 0, "{} tokens locked when idle",
                sizes.protected_tokens);
}

}  // namespace minisgl
