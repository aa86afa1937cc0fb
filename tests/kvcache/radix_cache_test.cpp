#include "kvcache/radix_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "kvcache/naive_cache.h"
#include "utils/error.h"

namespace minisgl {
namespace {

using Ints = std::vector<int32_t>;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Ints locations_of(const PrefixCache& cache, const PrefixHandle& handle, int64_t begin = 0) {
  Ints out(static_cast<size_t>(handle.length - begin));
  cache.locations(handle, begin, out);
  return out;
}

Ints range(int32_t begin, int32_t end) {
  Ints values(static_cast<size_t>(end - begin));
  std::iota(values.begin(), values.end(), begin);
  return values;
}

// Three prompts, two of which share two tokens.
struct ThreePrompts : ::testing::Test {
  RadixCache cache{1};
  void SetUp() override {
    cache.insert_prefix(Ints{1, 2, 3, 4}, Ints{10, 11, 12, 13}, 0);
    cache.insert_prefix(Ints{1, 2, 5, 6}, Ints{10, 11, 20, 21}, 0);
    cache.insert_prefix(Ints{7, 8}, Ints{30, 31}, 0);
  }
};

TEST_F(ThreePrompts, AMatchSplitsTheNodeThatAgreesInPart) {
  const PrefixHandle hit = cache.match_prefix(Ints{1, 2, 3, 9}, 0);
  EXPECT_EQ(hit.length, 3);
  EXPECT_THAT(locations_of(cache, hit), ElementsAre(10, 11, 12));
  EXPECT_THAT(locations_of(cache, hit, 2), ElementsAre(12));
  cache.check_integrity();
}

TEST_F(ThreePrompts, EvictionTakesTheLeastRecentlyUsedUnlockedLeavesWhole) {
  const PrefixHandle hit = cache.match_prefix(Ints{1, 2, 3, 9}, 0);
  const PrefixLock lock(cache, hit);
  EXPECT_EQ(cache.sizes().evictable_tokens, 5);
  EXPECT_EQ(cache.sizes().protected_tokens, 3);

  Ints freed;
  cache.evict(2, freed);
  EXPECT_THAT(freed, ElementsAre(13, 20, 21));
  freed.clear();
  cache.evict(1, freed);
  EXPECT_THAT(freed, ElementsAre(30, 31));
  freed.clear();
  cache.evict(1, freed);
  EXPECT_THAT(freed, IsEmpty());

  // What is left: (root) -> [1, 2] -> [3], each locked once.
  const std::vector<PrefixNodeInfo> nodes = cache.snapshot();
  ASSERT_EQ(nodes.size(), 3u);
  EXPECT_EQ(nodes[0].parent, -1);
  EXPECT_EQ(nodes[1].parent, nodes[0].id);
  EXPECT_EQ(nodes[1].num_tokens, 2);
  EXPECT_EQ(nodes[1].ref_count, 1);
  EXPECT_EQ(nodes[2].parent, nodes[1].id);
  EXPECT_EQ(nodes[2].num_tokens, 1);
  EXPECT_EQ(nodes[2].ref_count, 1);
  cache.check_integrity();
}

TEST_F(ThreePrompts, EvictingNothingFreesNothing) {
  Ints freed;
  cache.evict(0, freed);
  EXPECT_THAT(freed, IsEmpty());
}

TEST_F(ThreePrompts, FlushKeepsWhatIsLockedAndNothingElse) {
  const PrefixLock lock(cache, cache.match_prefix(Ints{7, 8}, 0));
  Ints freed;
  cache.flush(freed);
  std::ranges::sort(freed);
  EXPECT_THAT(freed, ElementsAre(10, 11, 12, 13, 20, 21));
  Ints left;
  cache.append_pages(left);
  EXPECT_THAT(left, ElementsAre(30, 31));
  cache.check_integrity();
}

TEST_F(ThreePrompts, AUseMovesALeafToTheEndOfTheQueue) {
  cache.match_prefix(Ints{1, 2, 3, 4}, 0);
  Ints freed;
  cache.evict(1, freed);
  EXPECT_THAT(freed, ElementsAre(20, 21));
}

struct MatchCase {
  const char* name;
  Ints cached, query;
  int64_t page_size, matched;
  PrefixStop stop;
  int64_t agreeing;
};
class RadixMatch : public ::testing::TestWithParam<MatchCase> {};

TEST_P(RadixMatch, FindsWholePagesAndSaysWhyItStopped) {
  const MatchCase& c = GetParam();
  RadixCache cache(c.page_size);
  const Ints locations = range(0, static_cast<int32_t>(c.cached.size()));
  cache.insert_prefix(c.cached, locations, 0);
  const PrefixHandle hit = cache.match_prefix(c.query, 0);
  EXPECT_EQ(hit.length, c.matched);
  const PrefixDivergence divergence = cache.divergence(hit, c.query, 0);
  EXPECT_EQ(divergence.stop, c.stop);
  EXPECT_EQ(divergence.agreeing_tokens, c.agreeing);
  cache.check_integrity();
}

INSTANTIATE_TEST_SUITE_P(
    Radix, RadixMatch,
    ::testing::ValuesIn(std::vector<MatchCase>{
        // name              cached                 query              page matched why agreeing
        {"NothingCached", {}, {1, 2}, 1, 0, PrefixStop::kNotCached, 0},
        {"SplitsANode", {1, 2, 3}, {1, 2, 9}, 1, 2, PrefixStop::kDiffers, 2},
        {"TakesAll", {1, 2, 3}, {1, 2, 3}, 1, 3, PrefixStop::kComplete, 3},
        {"GoesOn", {1, 2, 3}, {1, 2, 3, 4}, 1, 3, PrefixStop::kNotCached, 3},
        {"RoundsDownToAPage", {1, 2, 3, 4}, {1, 2, 3}, 2, 2, PrefixStop::kPageBorder, 3},
        {"CachesWholePagesOnly", {1, 2, 3}, {1, 2, 3, 4}, 2, 2, PrefixStop::kNotCached, 2},
        {"DiffersInsideAPage", {1, 2, 3, 4}, {1, 2, 3, 5}, 2, 2, PrefixStop::kDiffers, 3},
        {"ShorterThanAPage", {1, 2, 3, 4}, {1, 2, 3}, 4, 0, PrefixStop::kPageBorder, 3},
        {"NothingAsked", {1, 2}, {}, 1, 0, PrefixStop::kComplete, 0},
    }),
    [](const auto& info) { return info.param.name; });

TEST(RadixCacheTest, InsertingAgainTellsWhatWasThereAndKeepsTheFirstPages) {
  RadixCache cache(2);
  const PrefixInsertion first = cache.insert_prefix(range(0, 4), Ints{10, 11, 20, 21}, 0);
  EXPECT_EQ(first.already_cached, 0);
  EXPECT_EQ(first.handle.length, 4);

  const PrefixInsertion second =
      cache.insert_prefix(range(0, 7), Ints{30, 31, 40, 41, 50, 51, 60}, 0);
  EXPECT_EQ(second.already_cached, 4);
  EXPECT_EQ(second.handle.length, 6);
  EXPECT_THAT(locations_of(cache, second.handle), ElementsAre(10, 11, 20, 21, 50, 51));
  cache.check_integrity();
}

TEST(RadixCacheTest, LessThanAPageIsNotInserted) {
  RadixCache cache(4);
  const PrefixInsertion inserted = cache.insert_prefix(range(0, 3), range(0, 3), 0);
  EXPECT_EQ(inserted.handle.length, 0);
  EXPECT_THAT(cache.snapshot(), IsEmpty());
}

TEST(RadixCacheTest, RefusesLocationsThatStartNoPage) {
  RadixCache cache(4);
  EXPECT_THROW(cache.insert_prefix(range(0, 4), range(2, 6), 0), Error);
}

TEST(RadixCacheTest, SaltsShareNothing) {
  RadixCache cache(1);
  cache.insert_prefix(range(0, 4), range(10, 14), 1);
  EXPECT_EQ(cache.match_prefix(range(0, 4), 0).length, 0);
  EXPECT_EQ(cache.match_prefix(range(0, 4), 2).length, 0);
  EXPECT_EQ(cache.insert_prefix(range(0, 4), range(20, 24), 2).already_cached, 0);
  EXPECT_THAT(locations_of(cache, cache.match_prefix(range(0, 4), 1)), ElementsAre(10, 11, 12, 13));
  Ints freed;
  cache.flush(freed);
  EXPECT_EQ(freed.size(), 8u);
  EXPECT_THAT(cache.snapshot(), IsEmpty());  // roots of empty salts go too
  cache.check_integrity();
}

TEST(RadixCacheTest, ALockSurvivesTheSplitOfItsNode) {
  RadixCache cache(1);
  const PrefixInsertion whole = cache.insert_prefix(range(0, 6), range(10, 16), 0);
  PrefixLock lock(cache, whole.handle);
  cache.insert_prefix(Ints{0, 1, 9}, Ints{10, 11, 20}, 0);  // splits it after two tokens
  EXPECT_THAT(locations_of(cache, whole.handle), ElementsAre(10, 11, 12, 13, 14, 15));
  EXPECT_EQ(cache.sizes().protected_tokens, 6);
  Ints freed;
  cache.flush(freed);
  EXPECT_THAT(freed, ElementsAre(20));
  lock = PrefixLock();
  EXPECT_EQ(cache.sizes().protected_tokens, 0);
}

TEST(RadixCacheTest, LocksOfAPrefixAreCounted) {
  RadixCache cache(1);
  const PrefixHandle handle = cache.insert_prefix(range(0, 3), range(0, 3), 0).handle;
  {
    const PrefixLock one(cache, handle);
    PrefixLock two(cache, handle);
    const PrefixLock moved = std::move(two);
    EXPECT_EQ(moved.length(), 3);
    EXPECT_EQ(cache.snapshot()[1].ref_count, 2);
  }
  EXPECT_EQ(cache.sizes().protected_tokens, 0);
  EXPECT_THROW(cache.unlock(handle), Error);
}

TEST(RadixCacheTest, TheVersionTellsWhetherAMatchMayHaveChanged) {
  RadixCache cache(1);
  const uint64_t empty = cache.version();
  cache.insert_prefix(range(0, 3), range(0, 3), 0);
  const uint64_t filled = cache.version();
  EXPECT_NE(filled, empty);
  cache.match_prefix(range(0, 2), 0);
  cache.insert_prefix(range(0, 3), range(10, 13), 0);
  EXPECT_EQ(cache.version(), filled);
  Ints freed;
  cache.evict(1, freed);
  EXPECT_NE(cache.version(), filled);
}

// Every match splits off one more token: a path of 5,000 nodes, which must not cost stack.
TEST(RadixCacheTest, ADeepTreeIsWalkedAndDroppedWithoutRecursion) {
  constexpr int32_t kDepth = 5000;
  RadixCache cache(1);
  const Ints tokens = range(0, kDepth);
  cache.insert_prefix(tokens, tokens, 0);
  for (size_t n = kDepth - 1; n > 0; --n) cache.match_prefix(std::span(tokens).first(n), 0);
  EXPECT_EQ(cache.snapshot().size(), kDepth + 1u);
  EXPECT_EQ(cache.match_prefix(tokens, 0).length, kDepth);
  cache.check_integrity();
  Ints freed;
  cache.evict(2, freed);
  EXPECT_THAT(freed, ElementsAre(kDepth - 1, kDepth - 2));
  cache.flush(freed);
  EXPECT_EQ(freed.size(), static_cast<size_t>(kDepth));
}

TEST(NaiveCacheTest, NeverHoldsAnything) {
  NaiveCache cache;
  const PrefixInsertion inserted = cache.insert_prefix(range(0, 8), range(0, 8), 0);
  EXPECT_EQ(inserted.handle.length, 0);
  EXPECT_EQ(cache.match_prefix(range(0, 8), 0).length, 0);
  EXPECT_EQ(cache.divergence({}, range(0, 8), 0).stop, PrefixStop::kCacheOff);
  const PrefixLock lock(cache, inserted.handle);
  Ints freed;
  cache.evict(100, freed);
  cache.flush(freed);
  EXPECT_THAT(freed, IsEmpty());
}

TEST(PrefixCacheTest, IsMadeByName) {
  EXPECT_NE(dynamic_cast<RadixCache*>(make_prefix_cache("radix", 4).get()), nullptr);
  EXPECT_NE(dynamic_cast<NaiveCache*>(make_prefix_cache("naive", 4).get()), nullptr);
  try {
    make_prefix_cache("tree", 4);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("radix, naive"));
  }
}

}  // namespace
}  // namespace minisgl
