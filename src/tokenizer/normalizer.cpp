#include "tokenizer/normalizer.h"

#include <utf8proc.h>

#include "tokenizer/utf8.h"
#include "utils/error.h"

namespace minisgl {
namespace {

class UnicodeNormalizer : public Normalizer {
 public:
  explicit UnicodeNormalizer(NormalForm form) : form_(form) {}
  void apply(std::string& text, RegexScratch&) const override { normalize_unicode(text, form_); }

 private:
  NormalForm form_;
};

// Rebuilds the text character by character.
template <class Change>
void map_characters(std::string& text, Change&& change) {
  std::string out;
  out.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) change(next_code_point(text, pos), out);
  text = std::move(out);
}

void lowercase(std::string& text) {
  map_characters(text, [](char32_t c, std::string& out) {
    if (c == 0x130) {  // the only letter whose lower case is two characters
      out += "i\xCC\x87";
    } else {
      append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
    }
  });
}

utf8proc_category_t category(char32_t c) {
  return static_cast<utf8proc_category_t>(
      utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->category);
}

enum class Marks { kAll, kNonSpacing };

void strip_accents(std::string& text, Marks marks) {
  map_characters(text, [marks](char32_t c, std::string& out) {
    const auto cat = category(c);
    const bool other_mark = cat == UTF8PROC_CATEGORY_MC || cat == UTF8PROC_CATEGORY_ME;
    if (cat == UTF8PROC_CATEGORY_MN || (other_mark && marks == Marks::kAll)) return;
    append_utf8(out, c);
  });
}

class Lowercase : public Normalizer {
 public:
  void apply(std::string& text, RegexScratch&) const override { lowercase(text); }
};

class StripAccents : public Normalizer {
 public:
  void apply(std::string& text, RegexScratch&) const override { strip_accents(text, Marks::kAll); }
};

class StripSpaces : public Normalizer {
 public:
  StripSpaces(bool left, bool right) : left_(left), right_(right) {}
  void apply(std::string& text, RegexScratch&) const override {
    while (right_ && !text.empty()) {
      size_t begin = 0;
      if (!is_space(last_code_point(text, begin))) break;
      text.resize(begin);
    }
    size_t begin = 0;
    while (left_ && begin < text.size()) {
      size_t next = begin;
      if (!is_space(next_code_point(text, next))) break;
      begin = next;
    }
    text.erase(0, begin);
  }

 private:
  bool left_, right_;
};

class Prepend : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}
  void apply(std::string& text, RegexScratch&) const override {
    if (!text.empty()) text.insert(0, prefix_);
  }

 private:
  std::string prefix_;
};

class Replace : public Normalizer {
 public:
  Replace(std::string needle, std::string replacement)
      : needle_(std::move(needle)), replacement_(std::move(replacement)) {
    MINISGL_CHECK(!needle_.empty());
  }
  void apply(std::string& text, RegexScratch&) const override {
    replace_all(text, needle_, replacement_);
  }

 private:
  std::string needle_, replacement_;
};

class RegexReplace : public Normalizer {
 public:
  RegexReplace(Regex regex, std::string replacement)
      : regex_(std::move(regex)), replacement_(std::move(replacement)) {}
  void apply(std::string& text, RegexScratch& scratch) const override {
    std::string out;
    size_t done = 0;
    RegexScanner scanner(regex_, text, scratch);
    for (RegexMatch m = scanner.next(); m.found; m = scanner.next()) {
      out.append(text, done, m.begin - done);
      out += replacement_;
      done = m.end;
    }
    out.append(text, done);
    text = std::move(out);
  }

 private:
  Regex regex_;
  std::string replacement_;
};

class CollapseSpaces : public Normalizer {
 public:
  void apply(std::string& text, RegexScratch&) const override {
    std::string out;
    out.reserve(text.size());
    for (const char c : text) {
      if (c == ' ' && (out.empty() || out.back() == ' ')) continue;
      out.push_back(c);
    }
    text = std::move(out);
  }
};

class StripRight : public Normalizer {
 public:
  explicit StripRight(std::string suffix) : suffix_(std::move(suffix)) {
    MINISGL_CHECK(!suffix_.empty());
  }
  void apply(std::string& text, RegexScratch&) const override {
    while (text.ends_with(suffix_)) text.resize(text.size() - suffix_.size());
  }

 private:
  std::string suffix_;
};

bool is_chinese(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

class BertNormalizer : public Normalizer {
 public:
  explicit BertNormalizer(BertNormalizerOptions options) : options_(options) {}
  void apply(std::string& text, RegexScratch&) const override {
    if (options_.clean_text) clean(text);
    if (options_.handle_chinese_chars) space_out_chinese(text);
    if (options_.strip_accents) {
      normalize_unicode(text, NormalForm::kNfd);
      strip_accents(text, Marks::kNonSpacing);
    }
    if (options_.lowercase) lowercase(text);
  }

 private:
  static void clean(std::string& text) {
    map_characters(text, [](char32_t c, std::string& out) {
      const auto cat = category(c);
      const bool control = cat == UTF8PROC_CATEGORY_CC || cat == UTF8PROC_CATEGORY_CF ||
                           cat == UTF8PROC_CATEGORY_CN || cat == UTF8PROC_CATEGORY_CO;
      if (c == '\t' || c == '\n' || c == '\r') {
        out.push_back(' ');
      } else if (!control && c != 0xFFFD) {
        append_utf8(out, is_space(c) ? U' ' : c);
      }
    });
  }
  static void space_out_chinese(std::string& text) {
    map_characters(text, [](char32_t c, std::string& out) {
      if (is_chinese(c)) out.push_back(' ');
      append_utf8(out, c);
      if (is_chinese(c)) out.push_back(' ');
    });
  }
  BertNormalizerOptions options_;
};

class NormalizerSequence : public Normalizer {
 public:
  explicit NormalizerSequence(std::vector<std::unique_ptr<Normalizer>> steps)
      : steps_(std::move(steps)) {}
  void apply(std::string& text, RegexScratch& scratch) const override {
    for (const auto& step : steps_) step->apply(text, scratch);
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> steps_;
};

int utf8proc_options(NormalForm form) {
  switch (form) {
    case NormalForm::kNfc:
      return UTF8PROC_STABLE | UTF8PROC_COMPOSE;
    case NormalForm::kNfd:
      return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
    case NormalForm::kNfkc:
      return UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT;
    case NormalForm::kNfkd:
      return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT;
  }
  return 0;
}

void append_normalized(std::string& out, std::string_view text, NormalForm form) {
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                   static_cast<utf8proc_option_t>(utf8proc_options(form)));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, &std::free);
  if (size < 0) {
    throw_error(ErrorKind::kResource, "Unicode normalization of {} bytes failed: {}", text.size(),
                utf8proc_errmsg(size));
  }
  out.append(reinterpret_cast<const char*>(mapped), static_cast<size_t>(size));
}

struct Range {
  char32_t first, last;
};

// Characters that NFC never changes, whatever stands beside them, except as the first of a pair
// that composes: class 0, their own composition, never the second of a pair.
constexpr Range kNfcInert[] = {
    {0x0000, 0x02FF}, {0x0391, 0x03A1}, {0x03A3, 0x03CE}, {0x0400, 0x0482},  {0x048A, 0x052F},
    {0x05D0, 0x05EA}, {0x0620, 0x064A}, {0x0660, 0x066F}, {0x0671, 0x06D5},  {0x0904, 0x0939},
    {0x0E01, 0x0E30}, {0x1E00, 0x1EF9}, {0x2010, 0x205F}, {0x20A0, 0x20BF},  {0x2190, 0x2328},
    {0x232B, 0x2ADB}, {0x3001, 0x3029}, {0x3041, 0x3096}, {0x309B, 0x30FF},  {0x3400, 0x4DBF},
    {0x4E00, 0x9FFF}, {0xAC00, 0xD7A3}, {0xFF01, 0xFFEE}, {0x1F300, 0x1FAFF}};

bool is_nfc_inert(char32_t c) {
  for (const Range& range : kNfcInert) {
    if (c <= range.last) return c >= range.first;
  }
  return false;
}

// Normalizes only the runs of characters that may change, each with the inert one before it (which
// they may combine with). Real text is nearly all inert, and utf8proc is slow.
void normalize_nfc(std::string& text) {
  std::string out;
  size_t copied = 0;      // text[0, copied) is in out
  size_t last_inert = 0;  // where the inert character before `pos` begins
  size_t pos = 0;
  while (pos < text.size()) {
    if (static_cast<uint8_t>(text[pos]) < 0x80) {
      last_inert = pos++;
      continue;
    }
    size_t next = pos;
    if (is_nfc_inert(next_code_point(text, next))) {
      last_inert = pos;
      pos = next;
      continue;
    }
    while (next < text.size()) {
      size_t after = next;
      if (is_nfc_inert(next_code_point(text, after))) break;
      next = after;
    }
    out.append(text, copied, last_inert - copied);
    append_normalized(out, std::string_view(text).substr(last_inert, next - last_inert),
                      NormalForm::kNfc);
    copied = last_inert = pos = next;
  }
  if (copied == 0) return;
  out.append(text, copied);
  text = std::move(out);
}

}  // namespace

void normalize_unicode(std::string& text, NormalForm form) {
  bool ascii = true;
  for (const char c : text) ascii &= static_cast<uint8_t>(c) < 0x80;
  if (ascii) return;
  if (form == NormalForm::kNfc) {
    normalize_nfc(text);
    return;
  }
  std::string out;
  append_normalized(out, text, form);
  text = std::move(out);
}

void replace_all(std::string& text, std::string_view needle, std::string_view replacement) {
  size_t found = text.find(needle);
  if (found == std::string::npos) return;
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  size_t done = 0;
  for (; found != std::string::npos; found = text.find(needle, done)) {
    out.append(text, done, found - done);
    out += replacement;
    done = found + needle.size();
  }
  out.append(text, done);
  text = std::move(out);
}

std::unique_ptr<Normalizer> make_unicode_normalizer(NormalForm form) {
  return std::make_unique<UnicodeNormalizer>(form);
}
std::unique_ptr<Normalizer> make_lowercase() { return std::make_unique<Lowercase>(); }
std::unique_ptr<Normalizer> make_strip_accents() { return std::make_unique<StripAccents>(); }
std::unique_ptr<Normalizer> make_strip_spaces(bool left, bool right) {
  return std::make_unique<StripSpaces>(left, right);
}
std::unique_ptr<Normalizer> make_prepend(std::string prefix) {
  return std::make_unique<Prepend>(std::move(prefix));
}
std::unique_ptr<Normalizer> make_replace(std::string needle, std::string replacement) {
  return std::make_unique<Replace>(std::move(needle), std::move(replacement));
}
std::unique_ptr<Normalizer> make_regex_replace(Regex regex, std::string replacement) {
  return std::make_unique<RegexReplace>(std::move(regex), std::move(replacement));
}
std::unique_ptr<Normalizer> make_collapse_spaces() { return std::make_unique<CollapseSpaces>(); }
std::unique_ptr<Normalizer> make_strip_right(std::string suffix) {
  return std::make_unique<StripRight>(std::move(suffix));
}
std::unique_ptr<Normalizer> make_bert_normalizer(BertNormalizerOptions options) {
  return std::make_unique<BertNormalizer>(options);
}
std::unique_ptr<Normalizer> make_normalizer_sequence(
    std::vector<std::unique_ptr<Normalizer>> steps) {
  return std::make_unique<NormalizerSequence>(std::move(steps));
}

}  // namespace minisgl
