// Text before it is cut: Unicode normal forms, replacements, prefixes.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/regex.h"

namespace minisgl {

// Const and thread-safe. Text in and out is valid UTF-8.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(std::string& text, RegexScratch& scratch) const = 0;
};

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

std::unique_ptr<Normalizer> make_unicode_normalizer(NormalForm form);
std::unique_ptr<Normalizer> make_lowercase();
// Removes combining marks (category M), as after NFD.
std::unique_ptr<Normalizer> make_strip_accents();
std::unique_ptr<Normalizer> make_strip_spaces(bool left, bool right);
// Put before a text that is not empty.
std::unique_ptr<Normalizer> make_prepend(std::string prefix);
// needle: not empty.
std::unique_ptr<Normalizer> make_replace(std::string needle, std::string replacement);
std::unique_ptr<Normalizer> make_regex_replace(Regex regex, std::string replacement);
// SentencePiece's remove_extra_whitespaces: no spaces at the start, single ones behind it.
std::unique_ptr<Normalizer> make_collapse_spaces();
// Takes `suffix` (not empty) off the end as often as it stands there.
std::unique_ptr<Normalizer> make_strip_right(std::string suffix);

struct BertNormalizerOptions {
  bool clean_text = true;            // drops control characters, other spaces become ' '
  bool handle_chinese_chars = true;  // spaces around CJK ideographs
  bool strip_accents = true;
  bool lowercase = true;
};
std::unique_ptr<Normalizer> make_bert_normalizer(BertNormalizerOptions options);

std::unique_ptr<Normalizer> make_normalizer_sequence(
    std::vector<std::unique_ptr<Normalizer>> steps);

// In place.
void normalize_unicode(std::string& text, NormalForm form);
// needle: not empty. Also used by decoders.
void replace_all(std::string& text, std::string_view needle, std::string_view replacement);

}  // namespace minisgl
