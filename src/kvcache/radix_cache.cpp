#include "kvcache/radix_cache.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "utils/error.h"

namespace minisgl {
namespace {

RadixNode* node_of(const PrefixHandle& handle) { return static_cast<RadixNode*>(handle.node); }

size_t common_prefix(std::span<const int32_t> a, std::span<const int32_t> b) {
  constexpr size_t kStep = 64;  // memcmp() of so many is several times faster than a loop
  const size_t n = std::min(a.size(), b.size());
  size_t same = 0;
  while (same + kStep <= n && std::memcmp(&a[same], &b[same], kStep * sizeof(int32_t)) == 0) {
    same += kStep;
  }
  while (same < n && a[same] == b[same]) ++same;
  return same;
}

// How far `tokens` agree with the first page of any child. In sorted order the best one stands
// right before or right after the place where `tokens` would be.
size_t agreement_below(const RadixNode& node, std::span<const int32_t> tokens) {
  const auto after = node.children.lower_bound(tokens);
  size_t best = 0;
  if (after != node.children.end()) best = common_prefix(after->first, tokens);
  if (after != node.children.begin()) {
    best = std::max(best, common_prefix(std::prev(after)->first, tokens));
  }
  return best;
}

}  // namespace

bool FirstPageLess::operator()(std::span<const int32_t> a, std::span<const int32_t> b) const {
  return std::ranges::lexicographical_compare(a, b);
}

RadixCache::RadixCache(int64_t page_size) : page_size_(static_cast<size_t>(page_size)) {
  MINISGL_CHECK(page_size >= 1, "page size {}", page_size);
}

// ---- match and insert ----

PrefixHandle RadixCache::match_prefix(std::span<const int32_t> tokens, uint64_t salt) {
  const auto root = roots_.find(salt);
  if (root == roots_.end()) return {};
  const PrefixHandle end = walk(root->second, tokens);
  return end.length == 0 ? PrefixHandle{} : end;
}

// Down the tree as far as whole pages of `tokens` go. The nodes on the way have been used; the last
// one is split where it agrees in part only. Length 0: nothing matched, the node is the root.
PrefixHandle RadixCache::walk(RadixNode* root, std::span<const int32_t> tokens) {
  ++clock_;
  PrefixHandle at{root, 0};
  while (tokens.size() >= page_size_) {
    const auto found = node_of(at)->children.find(tokens.first(page_size_));
    if (found == node_of(at)->children.end()) break;
    RadixNode* child = found->second;
    const size_t same_pages = common_prefix(tokens, child->tokens) / page_size_;
    if (same_pages < child->pages.size()) child = split(child, same_pages);
    touch(child);
    at = {child, at.length + static_cast<int64_t>(child->tokens.size())};
    tokens = tokens.subspan(child->tokens.size());
  }
  return at;
}

void RadixCache::locations(const PrefixHandle& handle, int64_t begin,
                           std::span<int32_t> out) const {
  MINISGL_CHECK(0 <= begin && begin + static_cast<int64_t>(out.size()) == handle.length,
                "locations [{}, +{}) of a prefix of {}", begin, out.size(), handle.length);
  // From the last page back to the one that `begin` is in.
  int64_t end = handle.length;
  for (const RadixNode* node = node_of(handle); end > begin; node = node->parent) {
    for (size_t i = node->pages.size(); i-- > 0 && end > begin;) {
      for (size_t offset = page_size_; offset-- > 0 && end > begin;) {
        out[static_cast<size_t>(--end - begin)] = node->pages[i] + static_cast<int32_t>(offset);
      }
    }
  }
}

PrefixDivergence RadixCache::divergence(const PrefixHandle& match, std::span<const int32_t> tokens,
                                        uint64_t salt) const {
  const auto rest = tokens.subspan(static_cast<size_t>(match.length));
  const auto root = roots_.find(salt);
  const RadixNode* node = match.length > 0       ? node_of(match)
                          : root == roots_.end() ? nullptr
                                                 : root->second;
  PrefixDivergence result{match.length, PrefixStop::kNotCached};
  if (node != nullptr) result.agreeing_tokens += static_cast<int64_t>(agreement_below(*node, rest));
  if (rest.empty()) {
    result.stop = PrefixStop::kComplete;
  } else if (rest.size() < page_size_) {
    result.stop = PrefixStop::kPageBorder;
  } else if (node != nullptr && !node->children.empty()) {
    result.stop = PrefixStop::kDiffers;
  }
  return result;
}

PrefixInsertion RadixCache::insert_prefix(std::span<const int32_t> tokens,
                                          std::span<const int32_t> locations, uint64_t salt) {
  MINISGL_CHECK(tokens.size() == locations.size(), "insert: {} tokens, {} locations", tokens.size(),
                locations.size());
  const size_t whole = tokens.size() / page_size_ * page_size_;
  if (whole == 0) return {};
  PrefixHandle end = walk(root_of(salt), tokens.first(whole));
  const auto cached = static_cast<size_t>(end.length);
  if (cached < whole) {
    end.node = append_leaf(*node_of(end), tokens.subspan(cached, whole - cached),
                           locations.subspan(cached, whole - cached));
    end.length = static_cast<int64_t>(whole);
  }
  return {static_cast<int64_t>(cached), end};
}

RadixNode* RadixCache::append_leaf(RadixNode& parent, std::span<const int32_t> tokens,
                                   std::span<const int32_t> locations) {
  if (is_unlocked_leaf(parent)) leaves_.erase(&parent);
  RadixNode* leaf = new_node();
  leaf->tokens.assign(tokens.begin(), tokens.end());
  leaf->pages.reserve(tokens.size() / page_size_);
  for (size_t i = 0; i < tokens.size(); i += page_size_) {
    MINISGL_CHECK(locations[i] >= 0 && static_cast<size_t>(locations[i]) % page_size_ == 0,
                  "insert: location {} starts no page of {}", locations[i], page_size_);
    leaf->pages.push_back(locations[i]);
  }
  add_child(parent, *leaf);
  leaves_.insert(leaf);
  evictable_pages_ += static_cast<int64_t>(leaf->pages.size());
  ++version_;
  return leaf;
}

// The first `num_pages` pages of `node` become a node of their own above it, which is returned.
// `node` keeps the rest and its locks: a handle on it still covers the whole prefix.
RadixNode* RadixCache::split(RadixNode* node, size_t num_pages) {
  const auto num_tokens = static_cast<std::ptrdiff_t>(num_pages * page_size_);
  const auto cut = static_cast<std::ptrdiff_t>(num_pages);
  RadixNode& parent = *node->parent;
  remove_child(parent, *node);

  RadixNode* front = new_node();
  front->tokens.assign(node->tokens.begin(), node->tokens.begin() + num_tokens);
  front->pages.assign(node->pages.begin(), node->pages.begin() + cut);
  front->num_locks = node->num_locks;
  node->tokens.erase(node->tokens.begin(), node->tokens.begin() + num_tokens);
  node->pages.erase(node->pages.begin(), node->pages.begin() + cut);

  add_child(parent, *front);
  add_child(*front, *node);
  return front;
}

void RadixCache::touch(RadixNode* node) {
  if (!is_unlocked_leaf(*node)) {
    node->last_used = clock_;
    return;
  }
  auto entry = leaves_.extract(node);  // its place depends on last_used
  node->last_used = clock_;
  leaves_.insert(std::move(entry));
}

// ---- locks and eviction ----

void RadixCache::lock(const PrefixHandle& handle) {
  if (handle.length == 0) return;
  for (RadixNode* node = node_of(handle); !is_root(*node); node = node->parent) {
    if (node->num_locks++ > 0) continue;
    if (node->children.empty()) leaves_.erase(node);
    evictable_pages_ -= static_cast<int64_t>(node->pages.size());
    locked_pages_ += static_cast<int64_t>(node->pages.size());
  }
}

void RadixCache::unlock(const PrefixHandle& handle) {
  if (handle.length == 0) return;
  for (RadixNode* node = node_of(handle); !is_root(*node); node = node->parent) {
    MINISGL_CHECK(node->num_locks > 0, "node {} is unlocked more often than locked", node->id);
    if (--node->num_locks > 0) continue;
    if (node->children.empty()) leaves_.insert(node);
    evictable_pages_ += static_cast<int64_t>(node->pages.size());
    locked_pages_ -= static_cast<int64_t>(node->pages.size());
  }
}

void RadixCache::evict(int64_t num_tokens, std::vector<int32_t>& freed_pages) {
  while (num_tokens > 0 && !leaves_.empty()) {
    RadixNode* leaf = *leaves_.begin();
    freed_pages.insert(freed_pages.end(), leaf->pages.begin(), leaf->pages.end());
    num_tokens -= static_cast<int64_t>(leaf->tokens.size());
    remove_leaf(leaf);
  }
}

void RadixCache::flush(std::vector<int32_t>& freed_pages) {
  evict(evictable_pages_ * static_cast<int64_t>(page_size_), freed_pages);
}

void RadixCache::remove_leaf(RadixNode* leaf) {
  RadixNode* parent = leaf->parent;
  leaves_.erase(leaf);
  evictable_pages_ -= static_cast<int64_t>(leaf->pages.size());
  ++version_;
  remove_child(*parent, *leaf);
  recycle(leaf);
  if (is_unlocked_leaf(*parent)) leaves_.insert(parent);
  if (is_root(*parent) && parent->children.empty()) {
    roots_.erase(parent->salt);
    recycle(parent);
  }
}

// ---- nodes ----

bool RadixCache::is_unlocked_leaf(const RadixNode& node) {
  return !is_root(node) && node.children.empty() && node.num_locks == 0;
}

RadixNode* RadixCache::root_of(uint64_t salt) {
  RadixNode*& root = roots_[salt];
  if (root == nullptr) {
    root = new_node();
    root->salt = salt;
  }
  return root;
}

RadixNode* RadixCache::new_node() {
  RadixNode* node = nullptr;
  if (unused_.empty()) {
    node = &nodes_.emplace_back();
  } else {
    node = unused_.back();
    unused_.pop_back();
  }
  node->id = next_id_++;
  node->last_used = clock_;
  return node;
}

void RadixCache::recycle(RadixNode* node) {
  *node = RadixNode{};
  unused_.push_back(node);
}

void RadixCache::add_child(RadixNode& parent, RadixNode& child) {
  child.parent = &parent;
  parent.children.emplace(first_page(child), &child);
}

void RadixCache::remove_child(RadixNode& parent, const RadixNode& child) {
  parent.children.erase(first_page(child));
}

std::span<const int32_t> RadixCache::first_page(const RadixNode& node) const {
  return std::span(node.tokens).first(page_size_);
}

// ---- for people and tests ----

PrefixCacheSizes RadixCache::sizes() const {
  const auto tokens_a_page = static_cast<int64_t>(page_size_);
  return {evictable_pages_ * tokens_a_page, locked_pages_ * tokens_a_page};
}

void RadixCache::append_pages(std::vector<int32_t>& pages) const {
  for (const RadixNode& node : nodes_) {
    pages.insert(pages.end(), node.pages.begin(), node.pages.end());
  }
}

std::vector<PrefixNodeInfo> RadixCache::snapshot() const {
  std::vector<PrefixNodeInfo> infos;
  infos.reserve(nodes_.size() - unused_.size());
  std::deque<const RadixNode*> next;
  for (const auto& [salt, root] : roots_) next.push_back(root);
  for (; !next.empty(); next.pop_front()) {
    const RadixNode& node = *next.front();
    infos.push_back({.id = node.id,
                     .parent = is_root(node) ? -1 : node.parent->id,
                     .num_tokens = static_cast<int64_t>(node.tokens.size()),
                     .ref_count = node.num_locks,
                     .last_used = node.last_used});
    for (const auto& [page, child] : node.children) next.push_back(child);
  }
  return infos;
}

void RadixCache::check_integrity() const {
  int64_t evictable = 0;
  int64_t locked = 0;
  size_t num_leaves = 0;
  for (const RadixNode& node : nodes_) {
    if (node.id < 0) continue;
    check_node(node);
    (node.num_locks > 0 ? locked : evictable) += static_cast<int64_t>(node.pages.size());
    num_leaves += is_unlocked_leaf(node);
  }
  MINISGL_CHECK(evictable == evictable_pages_ && locked == locked_pages_,
                "radix cache: {} evictable pages ({} counted), {} locked ({} counted)",
                evictable_pages_, evictable, locked_pages_, locked);
  MINISGL_CHECK(num_leaves == leaves_.size(), "radix cache: {} unlocked leaves, {} counted",
                leaves_.size(), num_leaves);

  std::vector<int32_t> pages;
  append_pages(pages);
  std::ranges::sort(pages);
  const auto twice = std::ranges::adjacent_find(pages);
  MINISGL_CHECK(twice == pages.end(), "radix cache: the page at location {} is there twice",
                *twice);
}

void RadixCache::check_node(const RadixNode& node) const {
  const bool root = is_root(node);
  MINISGL_CHECK(root ? node.pages.empty() && !node.children.empty() : !node.pages.empty(),
                "node {}: {} pages, {} children", node.id, node.pages.size(), node.children.size());
  MINISGL_CHECK(node.tokens.size() == node.pages.size() * page_size_,
                "node {}: {} tokens in {} pages", node.id, node.tokens.size(), node.pages.size());
  MINISGL_CHECK(!is_unlocked_leaf(node) || leaves_.contains(const_cast<RadixNode*>(&node)),
                "node {} is an unlocked leaf that eviction does not know", node.id);
  int64_t locks_below = 0;
  for (const auto& [key, child] : node.children) {
    MINISGL_CHECK(child->parent == &node && key.data() == child->tokens.data(),
                  "node {} is not the child of {} that it is listed as", child->id, node.id);
    MINISGL_CHECK(root || child->last_used <= node.last_used,
                  "node {} was used after its parent {}", child->id, node.id);
    locks_below += child->num_locks;
  }
  MINISGL_CHECK(root || locks_below <= node.num_locks, "node {}: {} locks, {} below it", node.id,
                node.num_locks, locks_below);
}

}  // namespace minisgl
