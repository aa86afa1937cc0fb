// Turns one word into token ids.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace minisgl {

// A stretch of the word that is one token, or still to become one.
struct WordSymbol {
  int32_t id = -1;  // -1: no token yet
  int32_t prev = -1, next = -1;
  uint32_t begin = 0, end = 0;  // bytes of the word; empty once merged into its neighbour
};

// Two neighbours that may be merged. The lowest rank goes first, then the leftmost.
struct MergeCandidate {
  uint32_t rank = 0;
  int32_t left = 0;  // index of the left symbol
  uint32_t end = 0;  // where the right one ends: tells whether the pair still stands as it was
  int32_t id = 0;    // what they become
};

// Memory that encode() uses again from word to word. One per thread.
struct ModelScratch {
  std::vector<WordSymbol> symbols;
  std::vector<MergeCandidate> heap;
  std::vector<int32_t> ids;
};

// Const and thread-safe.
class TokenModel {
 public:
  virtual ~TokenModel() = default;
  // Appends the ids of `word`: not empty, below 4 GiB; valid UTF-8, or any bytes where the model
  // takes bytes. What it appends depends on the word alone.
  virtual void encode(std::string_view word, std::vector<int32_t>& ids,
                      ModelScratch& scratch) const = 0;
};

}  // namespace minisgl
