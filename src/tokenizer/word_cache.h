// Ids of words already seen in the text being encoded: real text repeats itself.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/vocab.h"

namespace minisgl {

// Direct-mapped: a word takes the place of whatever was there. One cache line a word, so a look-up
// touches one. Lives as long as one encode() call, on one thread.
class WordCache {
 public:
  // Sized for a text of this many bytes.
  explicit WordCache(size_t text_bytes)
      : slots_(text_bytes < kMinTextBytes ? 0
                                          : std::bit_ceil(std::min(text_bytes / 16, kMaxSlots))) {}

  // Appends the ids of `word`, not empty: from here, or by calling `encode`, which appends them.
  template <class Encode>
  void append(std::string_view word, std::vector<int32_t>& ids, Encode&& encode) {
    if (slots_.empty() || word.size() > sizeof(Slot::word)) {
      encode();
      return;
    }
    Slot& slot = slots_[hash_bytes(word) & (slots_.size() - 1)];
    if (slot.word_bytes == word.size() && std::memcmp(slot.word, word.data(), word.size()) == 0) {
      ids.insert(ids.end(), slot.ids, slot.ids + slot.num_ids);
      return;
    }
    const size_t before = ids.size();
    encode();
    const std::span<const int32_t> added = std::span(ids).subspan(before);
    if (added.size() > std::size(slot.ids)) return;
    slot.word_bytes = static_cast<uint8_t>(word.size());
    slot.num_ids = static_cast<uint8_t>(added.size());
    std::memcpy(slot.word, word.data(), word.size());
    std::copy(added.begin(), added.end(), slot.ids);
  }

 private:
  static constexpr size_t kMinTextBytes = 1024;
  static constexpr size_t kMaxSlots = 1 << 15;
  struct alignas(64) Slot {
    int32_t ids[7];
    uint8_t word_bytes = 0;  // 0: free
    uint8_t num_ids = 0;
    char word[34];
  };
  static_assert(sizeof(Slot) == 64);
  std::vector<Slot> slots_;  // a power of two, or none for short texts
};

}  // namespace minisgl
