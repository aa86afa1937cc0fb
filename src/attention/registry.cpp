#include "attention/registry.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "attention/hybrid.h"
#include "attention/reference.h"
#include "utils/error.h"

namespace minisgl {
namespace {

enum class Where { kCpu, kGpu, kBoth };

struct Entry {
  std::string_view name;
  Where where;
  int only_on;                // compute capability; 0: any
  MakeAttentionBackend make;  // null: looked up in the plugin
};

constexpr Entry kEntries[] = {
    {"reference", Where::kBoth, 0, make_reference_backend},
    {"cpu", Where::kCpu, 0, make_cpu_backend},
    {"fi", Where::kGpu, 0, nullptr},       // FlashInfer
    {"fa", Where::kGpu, 90, nullptr},      // FlashAttention 3
    {"cudnn", Where::kGpu, 0, nullptr},    // cuDNN's fused attention
    {"trtllm", Where::kGpu, 90, nullptr},  // TensorRT-LLM's XQA and fmha_v2
    {"own", Where::kGpu, 90, nullptr},
};

struct Alias {
  std::string_view alias, name;
};
constexpr Alias kAliases[] = {{"torch", "reference"}};

// Names of other projects' documentation, and what to say instead of "unknown".
struct Hint {
  std::string_view name, answer;
};
constexpr Hint kHints[] = {
    {"trtllm-gen",
     "its kernels exist only as binaries for Blackwell; 'trtllm' is what can be built "
     "from source for SM90 (XQA decode, fmha_v2 prefill)"},
    {"trtllm_gen",
     "its kernels exist only as binaries for Blackwell; 'trtllm' is what can be built "
     "from source for SM90 (XQA decode, fmha_v2 prefill)"},
    {"flashinfer", "it is called 'fi' here"},
    {"fa2", "there is one FlashAttention here, 'fa' (version 3)"},
    {"fa3", "it is called 'fa' here"},
    {"fa4", "there is one FlashAttention here, 'fa' (version 3)"},
    {"flash_attn", "it is called 'fa' here"},
    {"triton", "there is no Triton at run time; 'own' are this project's kernels"},
};

const BuiltAttention* find_plugin(const Entry& entry, const AttentionTarget& target) {
  const auto found = std::ranges::find(target.plugin, entry.name, &BuiltAttention::name);
  return found == target.plugin.end() ? nullptr : &*found;
}

MakeAttentionBackend built(const Entry& entry, const AttentionTarget& target) {
  if (entry.make != nullptr) return entry.make;
  const BuiltAttention* plugin = find_plugin(entry, target);
  return plugin == nullptr ? nullptr : plugin->make;
}

// The head dimensions that an entry is limited to; empty: it takes the target's.
std::span<const int> unfitting_head_dims(const Entry& entry, const AttentionTarget& target) {
  const BuiltAttention* plugin = find_plugin(entry, target);
  if (entry.make != nullptr || plugin == nullptr || target.head_dim == 0) return {};
  const bool fits =
      std::ranges::find(plugin->head_dims, target.head_dim) != plugin->head_dims.end();
  return fits ? std::span<const int>() : plugin->head_dims;
}

bool fits_device(const Entry& entry, const AttentionTarget& target) {
  if (entry.where == Where::kBoth) return true;
  return (entry.where == Where::kCpu) == target.device.is_cpu();
}

bool fits_generation(const Entry& entry, const AttentionTarget& target) {
  return entry.only_on == 0 || entry.only_on == target.compute_capability;
}

std::string supported_list(const AttentionTarget& target) {
  return fmt::format("{} (or two of them as \"PREFILL,DECODE\")",
                     fmt::join(supported_attention_backends(target), ", "));
}

std::string_view without_alias(std::string_view name) {
  for (const Alias& alias : kAliases) {
    if (alias.alias == name) return alias.name;
  }
  return name;
}

const Entry* find_entry(std::string_view name) {
  const auto* found = std::ranges::find(kEntries, without_alias(name), &Entry::name);
  return found == std::end(kEntries) ? nullptr : found;
}

[[noreturn]] void refuse_unknown(std::string_view name, const AttentionTarget& target) {
  const auto* hint = std::ranges::find(kHints, name, &Hint::name);
  if (hint != std::end(kHints)) {
    throw_error(ErrorKind::kInvalidArgument, "attention backend '{}': {}; supported: {}", name,
                hint->answer, supported_list(target));
  }
  throw_error(ErrorKind::kInvalidArgument, "unknown attention backend '{}'; supported: {}", name,
              supported_list(target));
}

// `entry` as the half of a pair that gets batches with prompts.
void check_prefills(const Entry& entry, const AttentionTarget& target) {
  const BuiltAttention* plugin = find_plugin(entry, target);
  if (entry.make != nullptr || plugin == nullptr || !plugin->decode_only) return;
  throw_error(ErrorKind::kInvalidArgument,
              "attention backend '{}' only decodes in this build; name one that prefills in front "
              "of it, e.g. \"fi,{}\"; supported: {}",
              entry.name, entry.name, supported_list(target));
}

// The entry of one name, if it can run on the target.
const Entry& usable_entry(std::string_view name, const AttentionTarget& target) {
  const Entry* entry = find_entry(name);
  if (entry == nullptr) refuse_unknown(name, target);
  if (!fits_device(*entry, target)) {
    throw_error(ErrorKind::kInvalidArgument,
                "attention backend '{}' runs on {}, the device is {}; supported: {}", name,
                entry->where == Where::kCpu ? "the CPU" : "NVIDIA GPUs", device_name(target.device),
                supported_list(target));
  }
  if (!fits_generation(*entry, target)) {
    throw_error(
        ErrorKind::kInvalidArgument,
        "attention backend '{}' is for SM{} GPUs, {} is SM{}{}; supported: {}", name,
        entry->only_on, device_name(target.device), target.compute_capability,
        entry->name == "trtllm" ? " (trtllm-gen, its Blackwell form, exists only as binaries)" : "",
        supported_list(target));
  }
  if (built(*entry, target) == nullptr) {
    throw_error(ErrorKind::kUnsupported,
                "attention backend '{}' is not part of this build{}; supported: {}", name,
                target.plugin.empty() ? " (build with -DMINISGL_CUDA=ON for the GPU's)" : "",
                supported_list(target));
  }
  if (const auto dims = unfitting_head_dims(*entry, target); !dims.empty()) {
    throw_error(ErrorKind::kUnsupported,
                "attention backend '{}' is built for head dimensions {}, the model has {}; "
                "supported: {}",
                name, fmt::join(dims, ", "), target.head_dim, supported_list(target));
  }
  return *entry;
}

struct Pair {
  std::string_view prefill, decode;
};

// Names as written; a single one stands for both.
Pair split_pair(std::string_view name, const AttentionTarget& target) {
  const size_t comma = name.find(',');
  if (comma == std::string_view::npos) return {name, name};
  const Pair pair{name.substr(0, comma), name.substr(comma + 1)};
  if (pair.decode.find(',') != std::string_view::npos || pair.prefill.empty() ||
      pair.decode.empty()) {
    throw_error(ErrorKind::kInvalidArgument,
                "attention backend '{}': a pair is two names and exactly one comma, "
                "\"PREFILL,DECODE\"; supported: {}",
                name, supported_list(target));
  }
  if (pair.prefill == "auto" || pair.decode == "auto") {
    throw_error(
        ErrorKind::kInvalidArgument,
        "attention backend '{}': 'auto' stands alone, it chooses both halves; supported: {}", name,
        supported_list(target));
  }
  return pair;
}

bool is_usable(std::string_view name, const AttentionTarget& target) {
  const Entry* entry = find_entry(name);
  return entry != nullptr && fits_device(*entry, target) && fits_generation(*entry, target) &&
         built(*entry, target) != nullptr && unfitting_head_dims(*entry, target).empty();
}

bool can_prefill(std::string_view name, const AttentionTarget& target) {
  if (!is_usable(name, target)) return false;
  const BuiltAttention* plugin = find_plugin(*find_entry(name), target);
  return plugin == nullptr || !plugin->decode_only;
}

// Best first, as measured on an H200 (docs/attention.md).
constexpr Pair kSm90Choices[] = {
    {"fa", "cudnn"}, {"fa", "fi"}, {"fa", "fa"}, {"fi", "cudnn"}, {"fi", "fi"}, {"cudnn", "cudnn"},
};
constexpr Pair kGpuChoices[] = {{"fi", "fi"}, {"cudnn", "cudnn"}};

std::string joined(std::string_view prefill, std::string_view decode) {
  if (prefill == decode) return std::string(prefill);
  return fmt::format("{},{}", prefill, decode);
}

bool is_float32_on_gpu(const AttentionTarget& target) {
  return !target.device.is_cpu() && target.dtype == DType::kFloat32;
}

ResolvedAttention resolve_auto(const AttentionTarget& target) {
  if (target.device.is_cpu()) return {"cpu", ""};
  const auto choices = target.compute_capability == 90 ? std::span<const Pair>(kSm90Choices)
                                                       : std::span<const Pair>(kGpuChoices);
  for (const Pair& pair : choices) {
    if (can_prefill(pair.prefill, target) && is_usable(pair.decode, target)) {
      const std::string name = joined(pair.prefill, pair.decode);
      return {name, fmt::format("auto on SM{}: {}", target.compute_capability, name)};
    }
  }
  return {"reference", "attention: this build has no fast backend for this GPU, using reference"};
}

}  // namespace

void validate_attention_backend(std::string_view name, const AttentionTarget& target) {
  if (name == "auto") return;
  const Pair pair = split_pair(name, target);
  check_prefills(usable_entry(pair.prefill, target), target);
  usable_entry(pair.decode, target);
}

ResolvedAttention resolve_attention_backend(std::string_view name, const AttentionTarget& target) {
  validate_attention_backend(name, target);
  if (is_float32_on_gpu(target)) {
    const bool asked = without_alias(name) == "reference";
    return {"reference", asked ? ""
                               : "float32 on a GPU: the reference attention is used, the "
                                 "others compute in 16 bits"};
  }
  if (name == "auto") return resolve_auto(target);
  const Pair pair = split_pair(name, target);
  return {joined(without_alias(pair.prefill), without_alias(pair.decode)), ""};
}

std::unique_ptr<AttentionBackend> create_attention_backend(std::string_view name,
                                                           const AttentionTarget& target,
                                                           Kernels& kernels, KVPool& pool) {
  MINISGL_CHECK(name != "auto", "'auto' is resolved before a backend is created");
  const Pair pair = split_pair(name, target);
  const Entry& prefill = usable_entry(pair.prefill, target);
  const Entry& decode = usable_entry(pair.decode, target);
  if (&prefill == &decode) return built(prefill, target)(kernels, pool);
  return std::make_unique<HybridBackend>(built(prefill, target)(kernels, pool),
                                         built(decode, target)(kernels, pool));
}

std::vector<std::string> supported_attention_backends(const AttentionTarget& target) {
  std::vector<std::string> names = {"auto"};
  for (const Entry& entry : kEntries) {
    if (is_usable(entry.name, target)) names.emplace_back(entry.name);
  }
  return names;
}

}  // namespace minisgl
