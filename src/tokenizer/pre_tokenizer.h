// Cuts text into the words that a model then encodes one by one.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/regex.h"

namespace minisgl {

struct Piece {
  std::string_view text;  // not empty; good only during the call that hands it over
  bool at_start = false;  // begins where the whole text begins
};

class PieceSink {
 public:
  virtual ~PieceSink() = default;
  virtual void take(Piece piece) = 0;
};

// Const and thread-safe. Hands the pieces of `piece` to `sink` in order, each before the next is
// cut, so that a chain of pre-tokenizers needs no memory for its stages.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void split(Piece piece, PieceSink& sink, RegexScratch& scratch) const = 0;
};

// What a pre-tokenizer looks for: an expression, a string, or characters of a kind.
class Matcher;
std::shared_ptr<const Matcher> match_regex(Regex regex);
std::shared_ptr<const Matcher> match_string(std::string text);  // not empty
std::shared_ptr<const Matcher> match_characters(bool (*is_match)(char32_t));

// What becomes of a match that stands between two pieces.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

// inverted: what lies between the matches is treated as the matches, and the other way round.
std::unique_ptr<PreTokenizer> make_split(std::shared_ptr<const Matcher> matcher,
                                         SplitBehavior behavior, bool inverted = false);

struct ByteLevelOptions {
  bool add_prefix_space = true;
  bool use_regex = true;        // cut with GPT-2's expression
  bool map_to_alphabet = true;  // false where the model takes the bytes themselves
};
std::unique_ptr<PreTokenizer> make_byte_level(ByteLevelOptions options);

enum class PrependScheme { kNever, kFirst, kAlways };
// Spaces become `replacement` (one character), which also begins every piece when `split`.
std::unique_ptr<PreTokenizer> make_metaspace(std::string replacement, PrependScheme scheme,
                                             bool split);

std::unique_ptr<PreTokenizer> make_pre_tokenizer_sequence(
    std::vector<std::unique_ptr<PreTokenizer>> steps);

}  // namespace minisgl
