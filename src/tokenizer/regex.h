// Regular expressions of tokenizer files, run by PCRE2 with its JIT compiler.
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct pcre2_real_code_8;
struct pcre2_real_match_context_8;
struct pcre2_real_match_data_8;
struct pcre2_real_jit_stack_8;

namespace minisgl {

// What one thread needs to match; make one per call and use it for any number of expressions.
class RegexScratch {
 public:
  RegexScratch();
  ~RegexScratch();
  RegexScratch(const RegexScratch&) = delete;
  RegexScratch& operator=(const RegexScratch&) = delete;

 private:
  friend class Regex;
  pcre2_real_match_data_8* match_ = nullptr;
  pcre2_real_match_context_8* context_ = nullptr;
  pcre2_real_jit_stack_8* jit_stack_ = nullptr;
};

struct RegexMatch {
  size_t begin = 0, end = 0;
  bool found = false;
};

// Compiled once, const and thread-safe from then on.
class Regex {
 public:
  // pattern: in the syntax of Oniguruma (Ruby), which Hugging Face's files are written in.
  // Errors: kBadFile, naming `what`, the pattern, and the place where it stops to make sense.
  Regex(std::string_view pattern, std::string_view what);
  Regex(Regex&&) noexcept = default;
  Regex& operator=(Regex&&) noexcept = default;
  ~Regex();

  // The first match in `text` (valid UTF-8) that begins at or after `from`. Look-behind sees the
  // whole text. Errors: kInvalidArgument when the expression backtracks without end.
  RegexMatch find(std::string_view text, size_t from, RegexScratch& scratch) const;

 private:
  struct CodeDeleter {
    void operator()(pcre2_real_code_8* code) const;
  };
  std::unique_ptr<pcre2_real_code_8, CodeDeleter> code_;
  std::string what_;
};

// All matches of an expression in a text, from left to right, as Oniguruma's scanners give them:
// no empty match directly after the match before.
class RegexScanner {
 public:
  // Where a scan stands; one may be stopped and continued.
  struct Cursor {
    size_t from = 0;
    size_t last_end = std::string_view::npos;  // of the match before
  };
  RegexScanner(const Regex& regex, std::string_view text, RegexScratch& scratch)
      : regex_(regex), text_(text), scratch_(scratch) {}
  RegexScanner(const Regex& regex, std::string_view text, RegexScratch& scratch, Cursor cursor)
      : regex_(regex), text_(text), scratch_(scratch), cursor_(cursor) {}
  RegexMatch next();
  Cursor cursor() const { return cursor_; }

 private:
  const Regex& regex_;
  std::string_view text_;
  RegexScratch& scratch_;
  Cursor cursor_;
};

// The same expression in PCRE2's syntax. Where the two differ: \h is a hexadecimal digit, \s and \w
// are Unicode's White_Space and word characters, {n,m}+ repeats (it is not possessive), {,n} means
// {0,n}, \uHHHH names a character, (?m) lets the dot match a newline. Set operations inside [ ]
// are not translated. Errors: kBadFile.
std::string oniguruma_to_pcre2(std::string_view pattern, std::string_view what);

}  // namespace minisgl
