#define PCRE2_CODE_UNIT_WIDTH 8
#include "tokenizer/regex.h"

#include <pcre2.h>

#include <algorithm>
#include <limits>
#include <new>

#include "tokenizer/utf8.h"
#include "utils/error.h"

namespace minisgl {
namespace {

// Backtracking steps of one match: sound expressions need a few a byte at most.
constexpr uint32_t kMatchLimit = 1'000'000;
constexpr uint32_t kMatchLimitPerByte = 16;
constexpr uint32_t kHeapLimitKib = 64 << 10;
constexpr size_t kJitStackStart = 32 << 10;
constexpr size_t kJitStackMax = 8 << 20;
constexpr size_t kMaxPatternBytes = 1 << 16;

std::string pcre2_message(int code) {
  PCRE2_UCHAR8 buffer[256] = {};
  pcre2_get_error_message_8(code, buffer, sizeof(buffer));
  return reinterpret_cast<const char*>(buffer);
}

}  // namespace

RegexScratch::RegexScratch()
    : match_(pcre2_match_data_create_8(1, nullptr)),
      context_(pcre2_match_context_create_8(nullptr)) {
  if (!match_ || !context_) throw std::bad_alloc();
  pcre2_set_heap_limit_8(context_, kHeapLimitKib);
  // Without one the JIT uses 32 KiB of the machine's stack, which long runs of one class outgrow.
  jit_stack_ = pcre2_jit_stack_create_8(kJitStackStart, kJitStackMax, nullptr);
  pcre2_jit_stack_assign_8(context_, nullptr, jit_stack_);
}

RegexScratch::~RegexScratch() {
  pcre2_match_data_free_8(match_);
  pcre2_match_context_free_8(context_);
  pcre2_jit_stack_free_8(jit_stack_);
}

Regex::~Regex() = default;
void Regex::CodeDeleter::operator()(pcre2_real_code_8* code) const { pcre2_code_free_8(code); }

Regex::Regex(std::string_view pattern, std::string_view what) : what_(what) {
  if (pattern.size() > kMaxPatternBytes || !is_valid_utf8(pattern)) {
    throw_error(ErrorKind::kBadFile,
                "{}: a regular expression of {} bytes; expected valid UTF-8 of at most {} bytes",
                what, pattern.size(), kMaxPatternBytes);
  }
  const std::string translated = oniguruma_to_pcre2(pattern, what);
  int error = 0;
  PCRE2_SIZE offset = 0;
  code_.reset(pcre2_compile_8(
      reinterpret_cast<PCRE2_SPTR8>(translated.data()), translated.size(),
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C | PCRE2_NO_AUTO_CAPTURE,
      &error, &offset, nullptr));
  if (!code_) {
    throw_error(ErrorKind::kBadFile, "{}: regular expression '{}' (in PCRE2: '{}'): {} at byte {}",
                what, pattern, translated, pcre2_message(error), offset);
  }
  // Where the machine forbids JIT the interpreter gives the same matches, only slower.
  pcre2_jit_compile_8(code_.get(), PCRE2_JIT_COMPLETE);
}

RegexMatch Regex::find(std::string_view text, size_t from, RegexScratch& scratch) const {
  const size_t limit = kMatchLimit + kMatchLimitPerByte * text.size();
  pcre2_set_match_limit_8(scratch.context_, static_cast<uint32_t>(std::min<size_t>(
                                                limit, std::numeric_limits<uint32_t>::max())));
  const auto run = [&](uint32_t options) {
    return pcre2_match_8(code_.get(), reinterpret_cast<PCRE2_SPTR8>(text.data()), text.size(), from,
                         PCRE2_NO_UTF_CHECK | options, scratch.match_, scratch.context_);
  };
  int result = run(0);
  if (result == PCRE2_ERROR_JIT_STACKLIMIT) result = run(PCRE2_NO_JIT);
  if (result == PCRE2_ERROR_NOMATCH) return {};
  if (result < 0) {
    throw_error(ErrorKind::kInvalidArgument,
                "{}: a regular expression gave up on the text near byte {} of {} ({}); the text "
                "cannot be split by this tokenizer",
                what_, from, text.size(), pcre2_message(result));
  }
  const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer_8(scratch.match_);
  // \K in a look-around can put the start behind the end or before `from`.
  if (offsets[0] > offsets[1] || offsets[0] < from) {
    throw_error(ErrorKind::kBadFile, "{}: a regular expression uses \\K inside a look-around",
                what_);
  }
  return {offsets[0], offsets[1], true};
}

RegexMatch RegexScanner::next() {
  auto& [from, last_end] = cursor_;
  while (from <= text_.size()) {
    const RegexMatch match = regex_.find(text_, from, scratch_);
    if (!match.found) break;
    if (match.end == match.begin && match.begin == last_end) {
      from = match.end + (match.end < text_.size() ? utf8_length(text_[match.end]) : 1);
      continue;
    }
    from = last_end = match.end;
    return match;
  }
  from = text_.size() + 1;
  return {};
}

}  // namespace minisgl
