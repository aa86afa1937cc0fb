#include "tokenizer/bpe.h"

#include <bit>
#include <cstring>

#include "tokenizer/byte_level.h"
#include "tokenizer/merge.h"
#include "tokenizer/utf8.h"
#include "utils/error.h"

namespace minisgl {
namespace {

// (left id, right id) -> rank and merged id. Open addressing, at most half full.
class PairTable {
 public:
  explicit PairTable(size_t count) : entries_(std::bit_ceil(std::max<size_t>(16, count * 2))) {
    shift_ = 64 - std::countr_zero(entries_.size());
  }
  // A pair that is already there gets the new rank, as a later line of a merges file has it.
  void insert(int32_t left, int32_t right, Merge merge) {
    Entry& entry = entries_[slot(key(left, right))];
    entry = {key(left, right), merge};
  }
  Merge find(int32_t left, int32_t right) const { return entries_[slot(key(left, right))].merge; }

 private:
  static constexpr uint64_t kFree = ~uint64_t{0};
  struct Entry {
    uint64_t key = kFree;
    Merge merge;
  };
  static uint64_t key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  // Where the key is, or the free entry where it belongs.
  size_t slot(uint64_t key) const {
    size_t i = (key * 0x9E3779B97F4A7C15ull) >> shift_;
    while (entries_[i].key != key && entries_[i].key != kFree) i = (i + 1) & (entries_.size() - 1);
    return i;
  }
  std::vector<Entry> entries_;
  int shift_ = 0;
};

class Bpe : public TokenModel {
 public:
  Bpe(const Vocab& vocab, std::span<const std::pair<std::string_view, std::string_view>> merges,
      BpeOptions options)
      : vocab_(vocab), options_(options), pairs_(merges.size()) {
    add_merges(merges);
    if (options.byte_level) {
      prepare_byte_level();
    } else if (options.byte_fallback) {
      fallback_ids_ = byte_token_ids(vocab);
    }
  }

  void encode(std::string_view word, std::vector<int32_t>& ids,
              ModelScratch& scratch) const override {
    if (options_.ignore_merges) {
      const int32_t whole = options_.byte_level ? byte_words_.find(word) : vocab_.find(word);
      if (whole >= 0) {
        ids.push_back(whole);
        return;
      }
    }
    scratch.ids.clear();
    if (options_.byte_level) {
      initial_bytes(word, scratch.ids);
    } else {
      initial_characters(word, scratch.ids);
    }
    constexpr size_t kFewSymbols = 40;
    if (scratch.ids.size() <= kFewSymbols) {
      merge_few(scratch);
      ids.insert(ids.end(), scratch.ids.begin(), scratch.ids.end());
    } else {
      merge_many(scratch, ids);
    }
  }

 private:
  void add_merges(std::span<const std::pair<std::string_view, std::string_view>> merges) {
    uint32_t rank = 0;
    std::string joined;
    for (const auto& [left, right] : merges) {
      joined.assign(left).append(right);
      const int32_t ids[3] = {vocab_.find(left), vocab_.find(right), vocab_.find(joined)};
      for (int i = 0; i < 3; ++i) {
        if (ids[i] >= 0) continue;
        throw_error(ErrorKind::kBadFile,
                    "merge {} ('{}' with '{}'): token '{}' is not in the vocabulary; the file is "
                    "damaged",
                    rank, left, right,
                    i == 0   ? left
                    : i == 1 ? right
                             : joined);
      }
      pairs_.insert(ids[0], ids[1], {rank++, ids[2]});
    }
  }

  void prepare_byte_level() {
    for (int byte = 0; byte < 256; ++byte) {
      std::string text;
      append_utf8(text, byte_to_alphabet(static_cast<uint8_t>(byte)));
      byte_ids_[static_cast<size_t>(byte)] = vocab_.find(text);
    }
    if (!options_.ignore_merges) return;
    byte_words_.reserve(static_cast<size_t>(vocab_.size()));
    for (int32_t id = 0; id < vocab_.size(); ++id) {
      if (!vocab_.contains(id) || vocab_.find(vocab_.token(id)) != id) continue;
      if (auto bytes = bytes_of_alphabet(vocab_.token(id))) {
        words_.push_back(std::move(*bytes));
        byte_words_.insert(words_.back(), id);
      }
    }
  }

  void initial_bytes(std::string_view word, std::vector<int32_t>& ids) const {
    bool unk_pending = false;
    for (const char c : word) {
      const int32_t id = byte_ids_[static_cast<uint8_t>(c)];
      add_known_or_unknown(id, ids, unk_pending);
    }
    if (unk_pending) ids.push_back(options_.unk_id);
  }

  void initial_characters(std::string_view word, std::vector<int32_t>& ids) const {
    bool unk_pending = false;
    for (size_t pos = 0; pos < word.size();) {
      const std::string_view character = word.substr(pos, utf8_length(word[pos]));
      pos += character.size();
      const int32_t id = vocab_.find(character);
      if (id < 0 && options_.byte_fallback && add_bytes(character, ids)) continue;
      add_known_or_unknown(id, ids, unk_pending);
    }
    if (unk_pending) ids.push_back(options_.unk_id);
  }

  // An unknown one waits until the next is seen, since fuse_unk makes one of them.
  void add_known_or_unknown(int32_t id, std::vector<int32_t>& ids, bool& unk_pending) const {
    if (id >= 0) {
      if (unk_pending) ids.push_back(options_.unk_id);
      unk_pending = false;
      ids.push_back(id);
    } else if (options_.unk_id >= 0) {
      if (unk_pending && !options_.fuse_unk) ids.push_back(options_.unk_id);
      unk_pending = true;
    }
  }

  bool add_bytes(std::string_view character, std::vector<int32_t>& ids) const {
    for (const char c : character) {
      if (fallback_ids_[static_cast<uint8_t>(c)] < 0) return false;
    }
    for (const char c : character) ids.push_back(fallback_ids_[static_cast<uint8_t>(c)]);
    return true;
  }

  // Quadratic, but without a heap: what nearly all words want.
  void merge_few(ModelScratch& scratch) const {
    std::vector<int32_t>& ids = scratch.ids;
    if (ids.size() < 2) return;
    Merge merges[64];  // of ids i and i + 1
    size_t count = ids.size() - 1;
    for (size_t i = 0; i < count; ++i) merges[i] = find(ids[i], ids[i + 1]);
    while (count > 0) {
      size_t best = 0;
      uint32_t best_rank = kNoRank;
      for (size_t i = 0; i < count; ++i) {
        if (merges[i].rank < best_rank) {
          best_rank = merges[i].rank;
          best = i;
        }
      }
      if (best_rank == kNoRank) return;
      ids[best] = merges[best].id;
      ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
      --count;
      std::memmove(merges + best, merges + best + 1, (count - best) * sizeof(Merge));
      if (best > 0) merges[best - 1] = find(ids[best - 1], ids[best]);
      if (best < count) merges[best] = find(ids[best], ids[best + 1]);
    }
  }

  void merge_many(ModelScratch& scratch, std::vector<int32_t>& ids) const {
    scratch.symbols.clear();
    for (uint32_t i = 0; i < scratch.ids.size(); ++i) {
      scratch.symbols.push_back({scratch.ids[i], -1, -1, i, i + 1});
    }
    merge_symbols(scratch, [&](const WordSymbol& left, const WordSymbol& right) {
      return pairs_.find(left.id, right.id);
    });
    for (const WordSymbol& symbol : scratch.symbols) {
      if (symbol.begin != symbol.end) ids.push_back(symbol.id);
    }
  }

  static constexpr uint32_t kNoRank = ~uint32_t{0};
  Merge find(int32_t left, int32_t right) const {
    const Merge merge = pairs_.find(left, right);
    return merge.id < 0 ? Merge{kNoRank, -1} : merge;
  }

  const Vocab& vocab_;
  BpeOptions options_;
  PairTable pairs_;
  std::array<int32_t, 256> byte_ids_{};
  std::array<int32_t, 256> fallback_ids_{};
  std::deque<std::string> words_;  // keys of byte_words_
  StringMap byte_words_;           // raw bytes -> id, for ignore_merges
};

}  // namespace

std::unique_ptr<TokenModel> make_bpe(
    const Vocab& vocab, std::span<const std::pair<std::string_view, std::string_view>> merges,
    BpeOptions options) {
  return std::make_unique<Bpe>(vocab, merges, options);
}

std::array<int32_t, 256> byte_token_ids(const Vocab& vocab) {
  std::array<int32_t, 256> ids;
  for (int byte = 0; byte < 256; ++byte) {
    ids[static_cast<size_t>(byte)] = vocab.find(fmt::format("<0x{:02X}>", byte));
  }
  return ids;
}

int byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
  };
  const int high = digit(token[3]), low = digit(token[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

}  // namespace minisgl
