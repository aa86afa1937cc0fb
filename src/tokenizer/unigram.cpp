#include "tokenizer/unigram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "tokenizer/bpe.h"
#include "tokenizer/utf8.h"
#include "utils/error.h"

namespace minisgl {
namespace {

constexpr double kUnkPenalty = 10.0;  // below the worst piece

// All pieces, by their bytes; children in a hash of (node, byte).
class PieceTrie {
 public:
  explicit PieceTrie(size_t bytes) {
    edges_.resize(std::bit_ceil(std::max<size_t>(64, bytes * 2)));
  }

  void insert(std::string_view text, int32_t id) {
    uint32_t node = 0;
    for (const char c : text) {
      Edge& edge = edges_[slot(node, c)];
      if (edge.child == 0) edge = {key(node, c), static_cast<uint32_t>(ids_.size()), true};
      if (edge.child == ids_.size()) ids_.push_back(-1);
      node = edge.child;
    }
    if (ids_[node] < 0) ids_[node] = id;
  }

  // take(length, id) for every piece that `text` begins with, the shortest first.
  template <class F>
  void prefixes(std::string_view text, F&& take) const {
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      const Edge& edge = edges_[slot(node, text[i])];
      if (edge.child == 0) return;
      node = edge.child;
      if (ids_[node] >= 0) take(i + 1, ids_[node]);
    }
  }

 private:
  struct Edge {
    uint64_t key = 0;
    uint32_t child = 0;  // 0: free (the root is nobody's child)
    bool used = false;
  };
  static uint64_t key(uint32_t node, char c) {
    return static_cast<uint64_t>(node) << 8 | static_cast<uint8_t>(c);
  }
  size_t slot(uint32_t node, char c) const {
    const uint64_t k = key(node, c);
    size_t i = ((k * 0x9E3779B97F4A7C15ull) >> 20) & (edges_.size() - 1);
    while (edges_[i].used && edges_[i].key != k) i = (i + 1) & (edges_.size() - 1);
    return i;
  }
  std::vector<Edge> edges_;       // at most half full: one edge a byte of the vocabulary at most
  std::vector<int32_t> ids_{-1};  // by node
};

size_t total_bytes(const Vocab& vocab) {
  size_t bytes = 0;
  for (int32_t id = 0; id < vocab.size(); ++id) bytes += vocab.token(id).size();
  return bytes;
}

class Unigram : public TokenModel {
 public:
  Unigram(const Vocab& vocab, std::vector<double> scores, const std::vector<bool>& usable,
          UnigramOptions options)
      : vocab_(vocab),
        scores_(std::move(scores)),
        options_(options),
        byte_ids_(byte_token_ids(vocab)),
        trie_(total_bytes(vocab)) {
    MINISGL_CHECK(scores_.size() == static_cast<size_t>(vocab.size()) &&
                  usable.size() == scores_.size());
    double lowest = std::numeric_limits<double>::infinity();
    for (int32_t id = 0; id < vocab.size(); ++id) {
      const auto i = static_cast<size_t>(id);
      if (!vocab.contains(id)) continue;
      lowest = std::min(lowest, scores_[i]);
      if (usable[i] && !vocab.token(id).empty()) trie_.insert(vocab.token(id), id);
    }
    unk_score_ = std::isfinite(lowest) ? lowest - kUnkPenalty : -kUnkPenalty;
  }

  void encode(std::string_view word, std::vector<int32_t>& ids, ModelScratch&) const override {
    const std::vector<Node> best = viterbi(word);
    // From the end back to the start; neighbouring unknown stretches become one.
    std::vector<std::pair<size_t, size_t>> stretches;
    bool unk_before = false;
    for (size_t end = word.size(); end > 0; end = best[end].begin) {
      const bool unk = best[end].id == kUnknown;
      if (unk && unk_before) {
        stretches.back().first = best[end].begin;
      } else {
        stretches.push_back({best[end].begin, end});
      }
      unk_before = unk;
    }
    for (auto it = stretches.rbegin(); it != stretches.rend(); ++it) {
      add(word.substr(it->first, it->second - it->first), best[it->second].id, ids);
    }
  }

 private:
  static constexpr int32_t kUnknown = -1;
  struct Node {  // the best way to end here
    double score = 0;
    size_t begin = std::numeric_limits<size_t>::max();  // of its last piece; none yet
    int32_t id = kUnknown;
  };

  std::vector<Node> viterbi(std::string_view word) const {
    std::vector<Node> best(word.size() + 1);
    const auto offer = [&](size_t begin, size_t end, double score, int32_t id) {
      Node& node = best[end];
      if (node.begin != std::numeric_limits<size_t>::max() && score <= node.score) return;
      node = {score, begin, id};
    };
    for (size_t pos = 0; pos < word.size();) {
      const size_t length = utf8_length(word[pos]);
      const double here = best[pos].score;
      bool has_single = false;
      trie_.prefixes(word.substr(pos), [&](size_t piece_length, int32_t id) {
        offer(pos, pos + piece_length, here + scores_[static_cast<size_t>(id)],
              id == options_.unk_id ? kUnknown : id);
        has_single |= piece_length == length;
      });
      if (!has_single) offer(pos, pos + length, here + unk_score_, kUnknown);
      pos += length;
    }
    return best;
  }

  void add(std::string_view text, int32_t id, std::vector<int32_t>& ids) const {
    if (id == kUnknown) id = vocab_.find(text);
    if (id >= 0) {
      ids.push_back(id);
      return;
    }
    const bool bytes = options_.byte_fallback && std::all_of(text.begin(), text.end(), [&](char c) {
                         return byte_ids_[static_cast<uint8_t>(c)] >= 0;
                       });
    if (bytes) {
      for (const char c : text) ids.push_back(byte_ids_[static_cast<uint8_t>(c)]);
    } else if (options_.unk_id >= 0) {
      ids.push_back(options_.unk_id);
    } else {
      throw_error(ErrorKind::kInvalidArgument,
                  "the text has '{}', which this vocabulary has no token for, and it defines no "
                  "unknown token",
                  text.substr(0, 64));
    }
  }

  const Vocab& vocab_;
  std::vector<double> scores_;
  UnigramOptions options_;
  std::array<int32_t, 256> byte_ids_;
  PieceTrie trie_;
  double unk_score_ = 0;
};

}  // namespace

std::unique_ptr<TokenModel> make_unigram(const Vocab& vocab, std::vector<double> scores,
                                         const std::vector<bool>& usable, UnigramOptions options) {
  return std::make_unique<Unigram>(vocab, std::move(scores), usable, options);
}

}  // namespace minisgl
