#include "tokenizer/gguf_pre.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "utils/error.h"
#include "utils/quote.h"

namespace minisgl {
namespace {

using Text = std::string_view;

// clang-format off
#define MINISGL_CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define MINISGL_TAIL "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define MINISGL_UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define MINISGL_LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define MINISGL_GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

constexpr Text kGpt2[] = {MINISGL_GPT2};
constexpr Text kDigitsGpt2[] = {"\\p{N}", MINISGL_GPT2};
constexpr Text kDefault[] = {
    "[\\p{P}\\$\\+<=>\\^~\\|]+", MINISGL_GPT2, "\\p{N}+", "[0-9][0-9][0-9]"};
constexpr Text kFalcon[] = {"[\\p{P}\\$\\+<=>\\^~\\|`]+", MINISGL_GPT2, "[0-9][0-9][0-9]"};
constexpr Text kLlama3[] = {
    MINISGL_CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}"
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" MINISGL_TAIL};
constexpr Text kQwen2[] = {
    MINISGL_CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}"
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" MINISGL_TAIL};
constexpr Text kQwen35[] = {
    MINISGL_CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}"
    "| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*" MINISGL_TAIL};
constexpr Text kGpt4o[] = {
    "[^\\r\\n\\p{L}\\p{N}]?" MINISGL_UPPER "*" MINISGL_LOWER "+" MINISGL_CONTRACTIONS "?"
    "|[^\\r\\n\\p{L}\\p{N}]?" MINISGL_UPPER "+" MINISGL_LOWER "*" MINISGL_CONTRACTIONS "?"
    "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" MINISGL_TAIL};
constexpr Text kTekken[] = {
    "[^\\r\\n\\p{L}\\p{N}]?" MINISGL_UPPER "*" MINISGL_LOWER "+"
    "|[^\\r\\n\\p{L}\\p{N}]?" MINISGL_UPPER "+" MINISGL_LOWER "*"
    "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" MINISGL_TAIL};
constexpr Text kDeepSeekV3[] = {
    "\\p{N}{1,3}",
    "[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"
    "|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
    "| ?[\\p{P}\\p{S}]+[\\r\\n]*" MINISGL_TAIL};
constexpr Text kDeepSeekCoder[] = {
    "[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+",
    "[\\x{4e00}-\\x{9fa5}\\x{0800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+", "\\p{N}"};
constexpr Text kBloom[] = {" ?[^(\\s|.,!?\\x{2026}\\x{3002}\\x{ff0c}\\x{3001}\\x{0964}\\x{06d4}\\x{060c})]+"};

constexpr Text kGpt2Names[] = {"gpt-2", "gpt2", "phi-2", "mpt", "olmo", "jais", "trillion"};
constexpr Text kDigitsNames[] = {"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone"};
constexpr Text kDefaultNames[] = {"default"};
constexpr Text kFalconNames[] = {"falcon"};
constexpr Text kLlama3Names[] = {"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "lfm2"};
constexpr Text kDbrxNames[] = {"dbrx", "smaug-bpe", "chatglm-bpe", "glm4"};
constexpr Text kQwen2Names[] = {"qwen2", "deepseek-r1-qwen", "stablelm2"};
constexpr Text kQwen35Names[] = {"qwen35"};
constexpr Text kGpt4oNames[] = {"gpt-4o", "llama4"};
constexpr Text kTekkenNames[] = {"tekken"};
constexpr Text kDeepSeekV3Names[] = {"deepseek-v3"};
constexpr Text kDeepSeekCoderNames[] = {"deepseek-coder"};
constexpr Text kBloomNames[] = {"bloom", "gpt3-finnish", "poro-chat"};

constexpr GgufPre kTable[] = {
    {kGpt2Names, kGpt2},
    {kDigitsNames, kDigitsGpt2},
    {kDefaultNames, kDefault},
    {kFalconNames, kFalcon},
    {kLlama3Names, kLlama3, /*ignore_merges=*/true, /*adds_bos=*/true},
    {kDbrxNames, kLlama3},
    {kQwen2Names, kQwen2, false, false, /*nfc=*/true},
    {kQwen35Names, kQwen35, false, false, /*nfc=*/true},
    {kGpt4oNames, kGpt4o},
    {kTekkenNames, kTekken, /*ignore_merges=*/true, /*adds_bos=*/true},
    {kDeepSeekV3Names, kDeepSeekV3},
    {kDeepSeekCoderNames, kDeepSeekCoder},
    {kBloomNames, kBloom},
};
// clang-format on

}  // namespace

const GgufPre& find_gguf_pre(std::string_view name, std::string_view file) {
  std::vector<std::string_view> known;
  for (const GgufPre& pre : kTable) {
    if (std::find(pre.names.begin(), pre.names.end(), name) != pre.names.end()) return pre;
    known.insert(known.end(), pre.names.begin(), pre.names.end());
  }
  throw_error(ErrorKind::kUnsupported,
              "{}: tokenizer.ggml.pre is {}, which is not known; known: {}", file, quote(name),
              fmt::join(known, ", "));
}

std::unique_ptr<PreTokenizer> make_gguf_pre_tokenizer(const GgufPre& pre, bool add_space_prefix) {
  std::vector<std::unique_ptr<PreTokenizer>> steps;
  if (add_space_prefix) {
    steps.push_back(
        make_byte_level({.add_prefix_space = true, .use_regex = false, .map_to_alphabet = false}));
  }
  for (const std::string_view regex : pre.regexes) {
    steps.push_back(
        make_split(match_regex(Regex(regex, "tokenizer.ggml.pre")), SplitBehavior::kIsolated));
  }
  return make_pre_tokenizer_sequence(std::move(steps));
}

}  // namespace minisgl
