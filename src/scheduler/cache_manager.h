// Who owns which page: free, in the prefix cache, or of one request.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kvcache/page_allocator.h"
#include "kvcache/prefix_cache.h"
#include "scheduler/sequence.h"
#include "scheduler/snapshot.h"
#include "tensor/tensor.h"

namespace minisgl {

// Keeps the rows of the page table in step with it. Every page is exactly one of: free, in the
// cache, owned by one sequence. Thread: scheduler.
class CacheManager {
 public:
  CacheManager(int64_t num_pages, int64_t page_size, TensorView page_table,
               std::unique_ptr<PrefixCache> cache);

  int64_t page_size() const { return page_size_; }
  int64_t num_free_pages() const { return allocator_.num_free(); }
  // Free now, or as soon as the cache gives up what nobody uses.
  int64_t num_available_pages() const;
  int64_t pages_for(int64_t tokens) const;
  const PrefixCache& prefix_cache() const { return *cache_; }

  // How much of the sequence's matchable_len() the cache holds; changes nothing of the sequence.
  PrefixHandle match(const Sequence& sequence);
  // Where and why a match, just returned, ended.
  PrefixDivergence divergence(const Sequence& sequence, const PrefixHandle& match) const;
  // The sequence, which has a row and no pages, takes over a match: locks it, and its locations go
  // into the row.
  void adopt(Sequence& sequence, const PrefixHandle& match);
  // Pages for positions below `length`; evicts if it must. False, and nothing changed, when there
  // are not enough.
  bool allocate(Sequence& sequence, int64_t length);
  // The whole pages below `length`, all computed, go to the cache and stay locked. Where another
  // sequence was faster, our duplicates are freed and our row points at the cache's pages.
  void insert(Sequence& sequence, int64_t length);
  // Inserts what is computed and lets go of everything.
  void release(Sequence& sequence);
  // Everything that nobody uses leaves the cache; returns the number of pages freed.
  int64_t flush();

  PageCounts page_counts() const;
  // Every page once, in order. `sequences`: all that hold pages.
  void append_page_owners(std::span<const Sequence* const> sequences,
                          std::vector<PageRun>& runs) const;
  // Error (internal): the first invariant that does not hold. `sequences`: all that hold pages.
  void check_integrity(std::span<const Sequence* const> sequences) const;

 private:
  std::span<int32_t> row(const Sequence& sequence) const;
  void free_pages_of_row(const Sequence& sequence, int64_t begin, int64_t end);

  int64_t page_size_;
  TensorView page_table_;
  std::unique_ptr<PrefixCache> cache_;
  PageAllocator allocator_;
  std::vector<int32_t> pages_;  // scratch
};

}  // namespace minisgl
