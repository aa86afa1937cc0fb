// The promise of a prefix cache: which prefixes of earlier requests are still in the KV pool.
//
// Unit: token locations; granularity: whole pages. The cache owns the pages that were inserted;
// a request that uses some of them locks them. One thread. Deterministic: a logical clock, ties by
// order of creation.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace minisgl {

// A node of the cache together with how many tokens lead to it. Stays valid while it is locked (a
// split keeps the locked tokens); length 0 is the root and needs no lock.
struct PrefixHandle {
  void* node = nullptr;
  int64_t length = 0;
};

struct PrefixInsertion {
  // [0, already_cached) was in the cache before this call: the caller still owns its own copy of
  // those pages beyond what it had locked, frees it, and repoints its row (see locations()).
  int64_t already_cached = 0;
  PrefixHandle handle;  // all whole pages of the tokens, now in the cache; not locked yet
};

// Why a match is not longer: the answer to "why was my prompt computed again?".
enum class PrefixStop : uint8_t {
  kComplete,    // every token matched
  kPageBorder,  // what is left fills no page
  kDiffers,     // the cache goes on with other tokens
  kNotCached,   // nothing in the cache goes on from there
  kCacheOff,    // this cache never holds anything
};
constexpr std::string_view prefix_stop_name(PrefixStop stop) {
  constexpr std::string_view kNames[] = {"complete", "page border", "differs", "not cached",
                                         "cache off"};
  return kNames[static_cast<size_t>(stop)];
}
struct PrefixDivergence {
  int64_t agreeing_tokens = 0;  // known to the cache, the last page counted in part
  PrefixStop stop = PrefixStop::kCacheOff;
};

struct PrefixCacheSizes {
  int64_t evictable_tokens = 0;
  int64_t protected_tokens = 0;
};

// One node for introspection, parents before children.
struct PrefixNodeInfo {
  int64_t id = 0;
  int64_t parent = -1;
  int64_t num_tokens = 0;
  int64_t ref_count = 0;
  uint64_t last_used = 0;  // logical clock
};

class PrefixCache {
 public:
  virtual ~PrefixCache() = default;

  // Longest prefix of `tokens` held by the cache, cut to whole pages. Callers that must compute at
  // least one token pass all but the last. Requests of different `salt` share nothing. May split a
  // node; never allocates or evicts a page.
  virtual PrefixHandle match_prefix(std::span<const int32_t> tokens, uint64_t salt) = 0;

  // The pool locations of a handle's tokens [begin, handle.length) -> out.
  virtual void locations(const PrefixHandle& handle, int64_t begin,
                         std::span<int32_t> out) const = 0;

  // Where and why `match`, just returned for `tokens` and `salt`, ended.
  virtual PrefixDivergence divergence(const PrefixHandle& match, std::span<const int32_t> tokens,
                                      uint64_t salt) const = 0;

  // The whole pages of `tokens` with their `locations` (same length) go to the cache, which owns
  // the pages that were not in it before.
  virtual PrefixInsertion insert_prefix(std::span<const int32_t> tokens,
                                        std::span<const int32_t> locations, uint64_t salt) = 0;

  virtual void lock(const PrefixHandle& handle) = 0;
  virtual void unlock(const PrefixHandle& handle) = 0;

  // Gives up unlocked, least recently used leaves until at least `num_tokens` locations are freed
  // or nothing evictable is left; appends the first location of each freed page.
  virtual void evict(int64_t num_tokens, std::vector<int32_t>& freed_pages) = 0;
  // Everything unlocked.
  virtual void flush(std::vector<int32_t>& freed_pages) = 0;

  virtual PrefixCacheSizes sizes() const = 0;
  // Grows whenever a page comes or goes: the same match at the same version finds the same.
  virtual uint64_t version() const = 0;
  // Recounts everything. Error (internal): the first invariant that does not hold.
  virtual void check_integrity() const = 0;
  virtual std::vector<PrefixNodeInfo> snapshot() const = 0;
  // The first location of every page that the cache owns, in no particular order.
  virtual void append_pages(std::vector<int32_t>& pages) const = 0;
};

// "radix" or "naive" (which never holds anything). Error: kInvalidArgument with the list.
std::unique_ptr<PrefixCache> make_prefix_cache(const std::string& type, int64_t page_size);

// Keeps a prefix in the cache while it lives. A request owns exactly one.
class PrefixLock {
 public:
  PrefixLock() = default;
  PrefixLock(PrefixCache& cache, PrefixHandle handle) : cache_(&cache), handle_(handle) {
    cache_->lock(handle_);
  }
  PrefixLock(PrefixLock&& other) noexcept
      : cache_(std::exchange(other.cache_, nullptr)), handle_(std::exchange(other.handle_, {})) {}
  PrefixLock& operator=(PrefixLock&& other) noexcept {
    std::swap(cache_, other.cache_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~PrefixLock() {
    if (cache_ != nullptr) cache_->unlock(handle_);
  }
  int64_t length() const { return handle_.length; }

 private:
  PrefixCache* cache_ = nullptr;
  PrefixHandle handle_;
};

}  // namespace minisgl
