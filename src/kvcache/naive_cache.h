// No reuse: every prompt is computed, every page freed at its request's end.
#pragma once

#include "kvcache/prefix_cache.h"

namespace minisgl {

// Never hits and takes nothing: all pages stay with the caller.
class NaiveCache : public PrefixCache {
 public:
  PrefixHandle match_prefix(std::span<const int32_t>, uint64_t) override { return {}; }
  void locations(const PrefixHandle&, int64_t, std::span<int32_t>) const override {}
  PrefixDivergence divergence(const PrefixHandle&, std::span<const int32_t>,
                              uint64_t) const override {
    return {};
  }
  PrefixInsertion insert_prefix(std::span<const int32_t>, std::span<const int32_t>,
                                uint64_t) override {
    return {};
  }
  void lock(const PrefixHandle&) override {}
  void unlock(const PrefixHandle&) override {}
  void evict(int64_t, std::vector<int32_t>&) override {}
  void flush(std::vector<int32_t>&) override {}
  PrefixCacheSizes sizes() const override { return {}; }
  uint64_t version() const override { return 0; }
  void check_integrity() const override {}
  std::vector<PrefixNodeInfo> snapshot() const override { return {}; }
  void append_pages(std::vector<int32_t>&) const override {}
};

}  // namespace minisgl
