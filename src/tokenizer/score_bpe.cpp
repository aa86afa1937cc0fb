#include "tokenizer/score_bpe.h"

#include <algorithm>
#include <numeric>

#include "tokenizer/bpe.h"
#include "tokenizer/merge.h"
#include "tokenizer/utf8.h"
#include "utils/error.h"

namespace minisgl {
namespace {

class ScoreBpe : public TokenModel {
 public:
  ScoreBpe(const Vocab& vocab, const std::vector<float>& scores, const std::vector<bool>& mergeable,
           int32_t unk_id)
      : byte_ids_(byte_token_ids(vocab)), unk_id_(unk_id) {
    const auto count = static_cast<size_t>(vocab.size());
    MINISGL_CHECK(scores.size() == count && mergeable.size() == count);
    pieces_.reserve(count);
    for (int32_t id = 0; id < vocab.size(); ++id) {
      if (vocab.contains(id) && mergeable[static_cast<size_t>(id)]) {
        pieces_.insert(vocab.token(id), id);
      }
    }
    rank_by_score(scores);
  }

  void encode(std::string_view word, std::vector<int32_t>& ids,
              ModelScratch& scratch) const override {
    scratch.symbols.clear();
    for (size_t pos = 0; pos < word.size();) {
      const size_t end = pos + utf8_length(word[pos]);
      scratch.symbols.push_back({pieces_.find(word.substr(pos, end - pos)), -1, -1,
                                 static_cast<uint32_t>(pos), static_cast<uint32_t>(end)});
      pos = end;
    }
    merge_symbols(scratch, [&](const WordSymbol& left, const WordSymbol& right) -> Merge {
      const int32_t id = pieces_.find(word.substr(left.begin, right.end - left.begin));
      return id < 0 ? Merge{} : Merge{ranks_[static_cast<size_t>(id)], id};
    });
    for (const WordSymbol& symbol : scratch.symbols) {
      if (symbol.begin == symbol.end) continue;
      if (symbol.id >= 0) {
        ids.push_back(symbol.id);
      } else {
        add_bytes(word.substr(symbol.begin, symbol.end - symbol.begin), ids);
      }
    }
  }

 private:
  // Equal scores get equal ranks, so that the leftmost pair goes first among them.
  void rank_by_score(const std::vector<float>& scores) {
    std::vector<size_t> order(scores.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return scores[a] > scores[b]; });
    ranks_.resize(scores.size());
    uint32_t rank = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      if (i > 0 && scores[order[i]] != scores[order[i - 1]]) ++rank;
      ranks_[order[i]] = rank;
    }
  }

  void add_bytes(std::string_view character, std::vector<int32_t>& ids) const {
    const bool known = std::all_of(character.begin(), character.end(),
                                   [&](char c) { return byte_ids_[static_cast<uint8_t>(c)] >= 0; });
    if (known) {
      for (const char c : character) ids.push_back(byte_ids_[static_cast<uint8_t>(c)]);
    } else if (unk_id_ >= 0) {
      ids.push_back(unk_id_);
    }
  }

  StringMap pieces_;
  std::vector<uint32_t> ranks_;  // by id
  std::array<int32_t, 256> byte_ids_;
  int32_t unk_id_;
};

}  // namespace

std::unique_ptr<TokenModel> make_score_bpe(const Vocab& vocab, const std::vector<float>& scores,
                                           const std::vector<bool>& mergeable, int32_t unk_id) {
  return std::make_unique<ScoreBpe>(vocab, scores, mergeable, unk_id);
}

}  // namespace minisgl
