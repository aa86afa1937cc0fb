// Random streams of calls against a model that is obvious and slow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <random>
#include <set>

#include "kvcache/page_allocator.h"
#include "kvcache/radix_cache.h"

namespace minisgl {
namespace {

using Ints = std::vector<int32_t>;

// Every cached page under the tokens that lead to it, its own included (the salt first).
class Model {
 public:
  explicit Model(size_t page_size) : page_size_(page_size) {}

  size_t match(const Ints& tokens, uint64_t salt) const {
    size_t n = 0;
    while (n + page_size_ <= tokens.size() && pages_.count(key(tokens, n + page_size_, salt)) > 0) {
      n += page_size_;
    }
    return n;
  }
  void insert(const Ints& tokens, const Ints& locations, uint64_t salt) {
    for (size_t n = page_size_; n <= tokens.size(); n += page_size_) {
      pages_.try_emplace(key(tokens, n, salt), locations[n - page_size_]);
    }
  }
  Ints locations(const Ints& tokens, size_t length, uint64_t salt) const {
    Ints out;
    for (size_t n = page_size_; n <= length; n += page_size_) {
      const int32_t first = pages_.at(key(tokens, n, salt));
      for (size_t i = 0; i < page_size_; ++i) out.push_back(first + static_cast<int32_t>(i));
    }
    return out;
  }
  // False unless the page is there, not locked, and nothing below it is left.
  bool evict(int32_t page, const std::set<int32_t>& locked) {
    const auto entry =
        std::ranges::find_if(pages_, [&](const auto& item) { return item.second == page; });
    if (entry == pages_.end() || locked.count(page) > 0) return false;
    pages_.erase(entry);
    return true;
  }
  bool is_closed() const {
    return std::ranges::all_of(pages_, [&](const auto& item) {
      const Ints& tokens = item.first;
      return tokens.size() <= 1 + page_size_ ||
             pages_.count(
                 Ints(tokens.begin(), tokens.end() - static_cast<std::ptrdiff_t>(page_size_))) > 0;
    });
  }
  size_t num_pages() const { return pages_.size(); }

 private:
  static Ints key(const Ints& tokens, size_t n, uint64_t salt) {
    Ints result = {static_cast<int32_t>(salt)};
    result.insert(result.end(), tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(n));
    return result;
  }
  size_t page_size_;
  std::map<Ints, int32_t> pages_;
};

// What eviction should do to a snapshot: unlocked leaves, least recently used first, one at a time.
std::map<int64_t, PrefixNodeInfo> evict_from_snapshot(const std::vector<PrefixNodeInfo>& nodes,
                                                      int64_t num_tokens) {
  std::map<int64_t, PrefixNodeInfo> left;
  for (const PrefixNodeInfo& node : nodes) left[node.id] = node;
  while (num_tokens > 0) {
    std::set<int64_t> parents;
    for (const auto& [id, node] : left) parents.insert(node.parent);
    const PrefixNodeInfo* victim = nullptr;
    for (const auto& [id, node] : left) {
      if (node.parent < 0 || node.ref_count > 0 || parents.count(id) > 0) continue;
      if (victim == nullptr || node.last_used < victim->last_used) victim = &node;
    }
    if (victim == nullptr) break;
    num_tokens -= victim->num_tokens;
    const int64_t parent = victim->parent;
    left.erase(victim->id);
    const bool last_of_root =
        left.at(parent).parent < 0 &&
        std::ranges::none_of(left, [&](const auto& item) { return item.second.parent == parent; });
    if (last_of_root) left.erase(parent);
  }
  return left;
}

class RadixProperty : public ::testing::TestWithParam<int> {};

TEST_P(RadixProperty, AgreesWithTheModelAfterEveryCall) {
  const auto page_size = static_cast<size_t>(GetParam());
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
    RadixCache cache(GetParam());
    PageAllocator allocator(48, GetParam());
    Model model(page_size);
    struct Held {
      PrefixLock lock;
      PrefixHandle handle;
      Ints tokens, locations;
    };
    std::list<Held> held;

    for (int step = 0; step < 300; ++step) {
      Ints tokens(below(6 * page_size + 2));
      // Few different pages, so that prefixes are shared; some differ in one token inside.
      for (size_t i = 0; i < tokens.size(); ++i) {
        tokens[i] = i % page_size == 0 ? static_cast<int32_t>(below(2)) : tokens[i - 1];
        if (below(8 * page_size) == 0) tokens[i] = 2;
      }
      const uint64_t salt = below(4) == 0 ? 1 : 0;
      switch (below(4)) {
        case 0: {  // match, and hold on to it sometimes
          const PrefixHandle hit = cache.match_prefix(tokens, salt);
          const size_t expected = model.match(tokens, salt);
          ASSERT_EQ(hit.length, static_cast<int64_t>(expected));
          Ints locations(expected);
          cache.locations(hit, 0, locations);
          ASSERT_EQ(locations, model.locations(tokens, expected, salt));
          if (below(2) == 0) held.push_back({PrefixLock(cache, hit), hit, tokens, locations});
          break;
        }
        case 1: {  // insert with pages of our own
          Ints pages;
          const size_t num_pages = tokens.size() / page_size;
          if (!allocator.try_allocate(static_cast<int64_t>(num_pages), pages)) break;
          Ints locations;
          for (const int32_t page : pages) {
            for (size_t i = 0; i < page_size; ++i) {
              locations.push_back(page + static_cast<int32_t>(i));
            }
          }
          tokens.resize(locations.size());
          const size_t already = model.match(tokens, salt);
          const PrefixInsertion inserted = cache.insert_prefix(tokens, locations, salt);
          model.insert(tokens, locations, salt);
          ASSERT_EQ(inserted.already_cached, static_cast<int64_t>(already));
          ASSERT_EQ(inserted.handle.length, static_cast<int64_t>(tokens.size()));
          allocator.free(std::span(pages).first(already / page_size));  // our duplicates
          break;
        }
        case 2: {  // let one go
          if (held.empty()) break;
          auto at = held.begin();
          std::advance(at, static_cast<std::ptrdiff_t>(below(held.size())));
          held.erase(at);
          break;
        }
        case 3: {  // evict
          const auto wanted = static_cast<int64_t>(below(5) * page_size);
          const auto expected = evict_from_snapshot(cache.snapshot(), wanted);
          Ints freed;
          cache.evict(wanted, freed);
          std::set<int32_t> locked;
          for (const Held& one : held) locked.insert(one.locations.begin(), one.locations.end());
          for (const int32_t page : freed) ASSERT_TRUE(model.evict(page, locked)) << page;
          ASSERT_TRUE(model.is_closed());
          allocator.free(freed);
          std::map<int64_t, PrefixNodeInfo> left;
          for (const PrefixNodeInfo& node : cache.snapshot()) left[node.id] = node;
          ASSERT_EQ(left.size(), expected.size());
          for (const auto& [id, node] : expected) ASSERT_EQ(left.count(id), 1u) << id;
          break;
        }
      }
      cache.check_integrity();
      Ints pages;
      cache.append_pages(pages);
      ASSERT_EQ(pages.size(), model.num_pages());
      for (const int32_t page : pages) ASSERT_FALSE(allocator.is_free(page / GetParam()));
      ASSERT_EQ(static_cast<int64_t>(pages.size()) + allocator.num_free(), allocator.num_pages());
      for (const Held& one : held) {  // still what was matched, whatever happened since
        Ints locations(one.locations.size());
        cache.locations(one.handle, 0, locations);
        ASSERT_EQ(locations, one.locations);
      }
    }
    held.clear();
    ASSERT_EQ(cache.sizes().protected_tokens, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(PageSizes, RadixProperty, ::testing::Values(1, 4, 16));

}  // namespace
}  // namespace minisgl
