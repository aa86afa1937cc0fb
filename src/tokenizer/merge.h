// Merging neighbouring symbols by rank, the heart of every BPE.
#pragma once

#include <algorithm>

#include "tokenizer/model.h"

namespace minisgl {

struct Merge {
  uint32_t rank = 0;
  int32_t id = -1;  // -1: the two do not merge
};

// Links the symbols of a word, which stand in `scratch.symbols` in order, into a list and merges
// them until no pair can be. O(n log n) for n symbols.
// lookup: Merge(const WordSymbol& left, const WordSymbol& right).
template <class Lookup>
void merge_symbols(ModelScratch& scratch, Lookup&& lookup) {
  std::vector<WordSymbol>& symbols = scratch.symbols;
  std::vector<MergeCandidate>& heap = scratch.heap;
  const auto later = [](const MergeCandidate& a, const MergeCandidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
  };
  const auto candidate = [&](int32_t left) -> MergeCandidate {
    const WordSymbol& a = symbols[static_cast<size_t>(left)];
    const WordSymbol& b = symbols[static_cast<size_t>(a.next)];
    const Merge merge = lookup(a, b);
    return {merge.rank, left, b.end, merge.id};
  };
  const auto push = [&](int32_t left) {
    const MergeCandidate c = candidate(left);
    if (c.id < 0) return;
    heap.push_back(c);
    std::push_heap(heap.begin(), heap.end(), later);
  };

  heap.clear();
  const auto count = static_cast<int32_t>(symbols.size());
  for (int32_t i = 0; i < count; ++i) {
    symbols[static_cast<size_t>(i)].prev = i - 1;
    symbols[static_cast<size_t>(i)].next = i + 1 < count ? i + 1 : -1;
  }
  for (int32_t i = 0; i + 1 < count; ++i) {
    const MergeCandidate c = candidate(i);
    if (c.id >= 0) heap.push_back(c);
  }
  std::make_heap(heap.begin(), heap.end(), later);

  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    const MergeCandidate c = heap.back();
    heap.pop_back();
    WordSymbol& left = symbols[static_cast<size_t>(c.left)];
    // Either may have been merged meanwhile. Where both borders are as they were, so is the pair,
    // since what lies between them can only have been merged into one.
    if (left.begin == left.end || left.next < 0) continue;
    WordSymbol& right = symbols[static_cast<size_t>(left.next)];
    if (right.end != c.end) continue;
    left.id = c.id;
    left.end = right.end;
    left.next = right.next;
    right.begin = right.end;
    if (left.next >= 0) {
      symbols[static_cast<size_t>(left.next)].prev = c.left;
      push(c.left);
    }
    if (left.prev >= 0) push(left.prev);
  }
}

}  // namespace minisgl
