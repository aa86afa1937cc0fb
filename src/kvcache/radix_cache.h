// Prefixes in a radix tree of pages.
//
//   (root) --[1 2 3 4]--> A --[5 6]--> B        "1 2 3 4 5 6" and "1 2 3 4 7 8" share A's pages
//                          '--[7 8]--> C        (page size 2: every edge is whole pages)
#pragma once

#include <deque>
#include <map>
#include <set>

#include "kvcache/prefix_cache.h"

namespace minisgl {

// Order of a node's children: by the tokens of their first page.
struct FirstPageLess {
  bool operator()(std::span<const int32_t> a, std::span<const int32_t> b) const;
};

// One edge and what hangs below it. The root of a salt has neither tokens nor pages.
struct RadixNode {
  int64_t id = -1;  // creation order; -1: not in use
  RadixNode* parent = nullptr;
  std::vector<int32_t> tokens;  // pages.size() * page_size
  std::vector<int32_t> pages;   // first location of each
  // Keys look at the first page of the child's own tokens.
  std::map<std::span<const int32_t>, RadixNode*, FirstPageLess> children;
  int64_t num_locks = 0;  // of this node and of all below it
  uint64_t last_used = 0;
  uint64_t salt = 0;  // of a root
};

// Invariants: a node is locked at least as often as its children together; children differ in their
// first page; evictable + locked = all pages; leaves_ holds exactly the leaves without locks.
// Matching and inserting cost O(tokens + nodes on the way * log children), eviction O(log leaves) a
// node; nothing walks the whole tree. Children are ordered, not hashed: the same calls give the
// same tree everywhere, and no prompt can make look-ups slow. Nodes live in a flat pool: depth
// costs no stack.
class RadixCache : public PrefixCache {
 public:
  explicit RadixCache(int64_t page_size);

  PrefixHandle match_prefix(std::span<const int32_t> tokens, uint64_t salt) override;
  void locations(const PrefixHandle& handle, int64_t begin, std::span<int32_t> out) const override;
  PrefixDivergence divergence(const PrefixHandle& match, std::span<const int32_t> tokens,
                              uint64_t salt) const override;
  PrefixInsertion insert_prefix(std::span<const int32_t> tokens, std::span<const int32_t> locations,
                                uint64_t salt) override;
  void lock(const PrefixHandle& handle) override;
  void unlock(const PrefixHandle& handle) override;
  void evict(int64_t num_tokens, std::vector<int32_t>& freed_pages) override;
  void flush(std::vector<int32_t>& freed_pages) override;
  PrefixCacheSizes sizes() const override;
  uint64_t version() const override { return version_; }
  void check_integrity() const override;
  std::vector<PrefixNodeInfo> snapshot() const override;
  void append_pages(std::vector<int32_t>& pages) const override;

 private:
  // Least recently used first; of equals the older node.
  struct UsedBefore {
    bool operator()(const RadixNode* a, const RadixNode* b) const {
      return a->last_used != b->last_used ? a->last_used < b->last_used : a->id < b->id;
    }
  };

  PrefixHandle walk(RadixNode* root, std::span<const int32_t> tokens);
  RadixNode* split(RadixNode* node, size_t num_pages);
  RadixNode* append_leaf(RadixNode& parent, std::span<const int32_t> tokens,
                         std::span<const int32_t> locations);
  void remove_leaf(RadixNode* leaf);
  void touch(RadixNode* node);

  RadixNode* root_of(uint64_t salt);
  RadixNode* new_node();
  void recycle(RadixNode* node);
  void add_child(RadixNode& parent, RadixNode& child);
  void remove_child(RadixNode& parent, const RadixNode& child);
  static bool is_root(const RadixNode& node) { return node.parent == nullptr; }
  static bool is_unlocked_leaf(const RadixNode& node);
  std::span<const int32_t> first_page(const RadixNode& node) const;
  void check_node(const RadixNode& node) const;

  size_t page_size_;
  std::deque<RadixNode> nodes_;
  std::vector<RadixNode*> unused_;
  std::map<uint64_t, RadixNode*> roots_;     // by salt; those with children
  std::set<RadixNode*, UsedBefore> leaves_;  // unlocked ones
  int64_t evictable_pages_ = 0;
  int64_t locked_pages_ = 0;
  int64_t next_id_ = 0;
  uint64_t clock_ = 0;  // counts walks
  uint64_t version_ = 0;
};

}  // namespace minisgl
