#include "tokenizer/pre_tokenizer.h"

#include <algorithm>

#include "tokenizer/byte_level.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/utf8.h"
#include "utils/error.h"

namespace minisgl {

// Finds the matches in a text one after another.
class Matcher {
 public:
  using Cursor = RegexScanner::Cursor;
  virtual ~Matcher() = default;
  virtual RegexMatch next(std::string_view text, Cursor& cursor, RegexScratch& scratch) const = 0;
};

namespace {

class RegexMatcher : public Matcher {
 public:
  explicit RegexMatcher(Regex regex) : regex_(std::move(regex)) {}
  RegexMatch next(std::string_view text, Cursor& cursor, RegexScratch& scratch) const override {
    RegexScanner scanner(regex_, text, scratch, cursor);
    const RegexMatch match = scanner.next();
    cursor = scanner.cursor();
    return match;
  }

 private:
  Regex regex_;
};

class StringMatcher : public Matcher {
 public:
  explicit StringMatcher(std::string needle) : needle_(std::move(needle)) {
    MINISGL_CHECK(!needle_.empty());
  }
  RegexMatch next(std::string_view text, Cursor& cursor, RegexScratch&) const override {
    const size_t found = text.find(needle_, cursor.from);
    if (found == std::string_view::npos) return {};
    cursor.from = found + needle_.size();
    return {found, cursor.from, true};
  }

 private:
  std::string needle_;
};

class CharacterMatcher : public Matcher {
 public:
  explicit CharacterMatcher(bool (*is_match)(char32_t)) : is_match_(is_match) {}
  RegexMatch next(std::string_view text, Cursor& cursor, RegexScratch&) const override {
    while (cursor.from < text.size()) {
      const size_t begin = cursor.from;
      if (is_match_(next_code_point(text, cursor.from))) return {begin, cursor.from, true};
    }
    return {};
  }

 private:
  bool (*is_match_)(char32_t);
};

void hand_over(Piece whole, size_t begin, size_t end, PieceSink& sink) {
  if (begin < end) {
    sink.take({whole.text.substr(begin, end - begin), whole.at_start && begin == 0});
  }
}

class Split : public PreTokenizer {
 public:
  Split(std::shared_ptr<const Matcher> matcher, SplitBehavior behavior, bool inverted)
      : matcher_(std::move(matcher)), behavior_(behavior), inverted_(inverted) {}

  void split(Piece piece, PieceSink& sink, RegexScratch& scratch) const override {
    switch (behavior_) {
      case SplitBehavior::kIsolated:
        each_span(piece.text, scratch,
                  [&](size_t begin, size_t end, bool) { hand_over(piece, begin, end, sink); });
        return;
      case SplitBehavior::kRemoved:
        each_span(piece.text, scratch, [&](size_t begin, size_t end, bool match) {
          if (!match) hand_over(piece, begin, end, sink);
        });
        return;
      default:
        merge(piece, sink, scratch);
    }
  }

 private:
  struct Span {
    size_t begin, end;
    bool match;
  };

  // Matches and what lies between them, in order; together they are the whole text.
  template <class F>
  void each_span(std::string_view text, RegexScratch& scratch, F&& take) const {
    size_t done = 0;
    Matcher::Cursor cursor;
    for (RegexMatch m = matcher_->next(text, cursor, scratch); m.found;
         m = matcher_->next(text, cursor, scratch)) {
      if (done != m.begin) take(done, m.begin, inverted_);
      take(m.begin, m.end, !inverted_);
      done = m.end;
    }
    if (done != text.size()) take(done, text.size(), inverted_);
  }

  void merge(Piece piece, PieceSink& sink, RegexScratch& scratch) const {
    std::vector<Span> spans;
    each_span(piece.text, scratch, [&](size_t begin, size_t end, bool match) {
      spans.push_back({begin, end, match});
    });
    if (behavior_ == SplitBehavior::kMergedWithNext) std::reverse(spans.begin(), spans.end());
    std::vector<Span> merged;
    bool previous_match = false;
    for (const Span& span : spans) {
      const bool joins = behavior_ == SplitBehavior::kContiguous
                             ? !merged.empty() && span.match == previous_match
                             : !merged.empty() && span.match && !previous_match;
      if (joins) {
        merged.back().begin = std::min(merged.back().begin, span.begin);
        merged.back().end = std::max(merged.back().end, span.end);
      } else {
        merged.push_back(span);
      }
      previous_match = span.match;
    }
    if (behavior_ == SplitBehavior::kMergedWithNext) std::reverse(merged.begin(), merged.end());
    for (const Span& span : merged) hand_over(piece, span.begin, span.end, sink);
  }

  std::shared_ptr<const Matcher> matcher_;
  SplitBehavior behavior_;
  bool inverted_;
};

constexpr std::string_view kGpt2Regex =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

class ByteLevel : public PreTokenizer {
 public:
  explicit ByteLevel(ByteLevelOptions options) : options_(options) {
    if (options.use_regex) {
      cut_ = make_split(match_regex(Regex(kGpt2Regex, "ByteLevel")), SplitBehavior::kIsolated);
    }
  }

  void split(Piece piece, PieceSink& sink, RegexScratch& scratch) const override {
    std::string prefixed;
    if (options_.add_prefix_space && piece.text.front() != ' ') {
      prefixed.append(" ").append(piece.text);
      piece.text = prefixed;
    }
    Mapper mapper(sink);
    PieceSink& next = options_.map_to_alphabet ? mapper : sink;
    if (cut_) {
      cut_->split(piece, next, scratch);
    } else {
      next.take(piece);
    }
  }

 private:
  class Mapper : public PieceSink {
   public:
    explicit Mapper(PieceSink& next) : next_(next) {}
    void take(Piece piece) override {
      text_.clear();
      append_in_alphabet(text_, piece.text);
      next_.take({text_, piece.at_start});
    }

   private:
    PieceSink& next_;
    std::string text_;
  };

  ByteLevelOptions options_;
  std::unique_ptr<PreTokenizer> cut_;
};

class Metaspace : public PreTokenizer {
 public:
  Metaspace(std::string replacement, PrependScheme scheme, bool split)
      : replacement_(std::move(replacement)), scheme_(scheme), split_(split) {
    MINISGL_CHECK(!replacement_.empty());
  }

  void split(Piece piece, PieceSink& sink, RegexScratch&) const override {
    std::string text(piece.text);
    replace_all(text, " ", replacement_);
    const bool wanted =
        scheme_ == PrependScheme::kAlways || (scheme_ == PrependScheme::kFirst && piece.at_start);
    if (wanted && !text.starts_with(replacement_)) text.insert(0, replacement_);
    const Piece whole{text, piece.at_start};
    size_t begin = 0;
    while (split_) {
      const size_t next = text.find(replacement_, begin == 0 && !text.starts_with(replacement_)
                                                      ? 0
                                                      : begin + replacement_.size());
      if (next == std::string::npos) break;
      hand_over(whole, begin, next, sink);
      begin = next;
    }
    hand_over(whole, begin, text.size(), sink);
  }

 private:
  std::string replacement_;
  PrependScheme scheme_;
  bool split_;
};

class PreTokenizerSequence : public PreTokenizer {
 public:
  explicit PreTokenizerSequence(std::vector<std::unique_ptr<PreTokenizer>> steps)
      : steps_(std::move(steps)) {}

  void split(Piece piece, PieceSink& sink, RegexScratch& scratch) const override {
    Link(*this, 0, sink, scratch).take(piece);
  }

 private:
  // Takes the pieces of step `index_ - 1` and puts them through the rest.
  class Link : public PieceSink {
   public:
    Link(const PreTokenizerSequence& sequence, size_t index, PieceSink& last, RegexScratch& scratch)
        : sequence_(sequence), index_(index), last_(last), scratch_(scratch) {}
    void take(Piece piece) override {
      if (index_ == sequence_.steps_.size()) {
        last_.take(piece);
        return;
      }
      Link next(sequence_, index_ + 1, last_, scratch_);
      PieceSink& sink = index_ + 1 == sequence_.steps_.size() ? last_ : next;
      sequence_.steps_[index_]->split(piece, sink, scratch_);
    }

   private:
    const PreTokenizerSequence& sequence_;
    size_t index_;
    PieceSink& last_;
    RegexScratch& scratch_;
  };

  std::vector<std::unique_ptr<PreTokenizer>> steps_;
};

}  // namespace

std::shared_ptr<const Matcher> match_regex(Regex regex) {
  return std::make_shared<RegexMatcher>(std::move(regex));
}
std::shared_ptr<const Matcher> match_string(std::string text) {
  return std::make_shared<StringMatcher>(std::move(text));
}
std::shared_ptr<const Matcher> match_characters(bool (*is_match)(char32_t)) {
  return std::make_shared<CharacterMatcher>(is_match);
}
std::unique_ptr<PreTokenizer> make_split(std::shared_ptr<const Matcher> matcher,
                                         SplitBehavior behavior, bool inverted) {
  return std::make_unique<Split>(std::move(matcher), behavior, inverted);
}
std::unique_ptr<PreTokenizer> make_byte_level(ByteLevelOptions options) {
  return std::make_unique<ByteLevel>(options);
}
std::unique_ptr<PreTokenizer> make_metaspace(std::string replacement, PrependScheme scheme,
                                             bool split) {
  return std::make_unique<Metaspace>(std::move(replacement), scheme, split);
}
std::unique_ptr<PreTokenizer> make_pre_tokenizer_sequence(
    std::vector<std::unique_ptr<PreTokenizer>> steps) {
  return std::make_unique<PreTokenizerSequence>(std::move(steps));
}

}  // namespace minisgl
