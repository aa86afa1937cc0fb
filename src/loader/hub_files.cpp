#include "loader/hub_files.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string_view>

#include "utils/error.h"
#include "utils/json.h"

namespace minisgl {
namespace {

constexpr std::string_view kConfig = "config.json";
constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr std::string_view kWholeModel = "model.safetensors";

// Read by the loaders and tokenizers, here or in other programs that share the cache.
constexpr std::string_view kSmallFiles[] = {
    kConfig,
    "generation_config.json",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "spiece.model",
    "sentencepiece.bpe.model",
    "chat_template.json",
    "hf_quant_config.json",
    "quantize_config.json",
};

bool listed(const std::vector<std::string>& listing, std::string_view name) {
  return std::find(listing.begin(), listing.end(), name) != listing.end();
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::string_view base_name(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == path.npos ? path : path.substr(slash + 1);
}

std::string join(const std::vector<std::string>& names, size_t most = 40) {
  std::string out;
  for (size_t i = 0; i < names.size() && i < most; ++i) {
    out += (i ? ", " : "") + names[i];
  }
  if (names.size() > most) out += fmt::format(" and {} more", names.size() - most);
  return out.empty() ? "nothing" : out;
}

bool is_small_file(std::string_view name) {
  if (name.ends_with(".jinja") || name.ends_with(".tiktoken")) return true;
  return std::find(std::begin(kSmallFiles), std::end(kSmallFiles), name) != std::end(kSmallFiles);
}

// model-00001-of-00002.safetensors and its like; not model.fp16.safetensors, which is another
// precision of the same weights, nor consolidated.safetensors, which is another format.
bool is_shard(std::string_view name) {
  return name.ends_with(".safetensors") && name.find('/') == name.npos &&
         (name.starts_with("model-") || name.starts_with("model_") ||
          name.starts_with("model.safetensors-"));
}

bool has_safetensors(const std::vector<std::string>& listing) {
  return listed(listing, kWholeModel) || listed(listing, kIndex) ||
         std::any_of(listing.begin(), listing.end(), is_shard);
}

// "dir/name-00001-of-00003.gguf" is part 1 of 3 of "dir/name"; a whole file is part 1 of 1.
struct GgufPart {
  std::string model;
  size_t part = 1, parts = 1;
};

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
}

GgufPart parse_gguf_name(std::string_view file) {
  const std::string_view stem = file.substr(0, file.size() - std::string_view(".gguf").size());
  constexpr size_t kSuffix = std::string_view("-00001-of-00003").size();
  GgufPart whole{.model = std::string(stem)};
  if (stem.size() <= kSuffix) return whole;
  const std::string_view suffix = stem.substr(stem.size() - kSuffix);
  const std::string_view part = suffix.substr(1, 5), parts = suffix.substr(10, 5);
  if (suffix[0] != '-' || suffix.substr(6, 4) != "-of-" || !all_digits(part) ||
      !all_digits(parts)) {
    return whole;
  }
  return {.model = std::string(stem.substr(0, stem.size() - kSuffix)),
          .part = static_cast<size_t>(std::stoul(std::string(part))),
          .parts = static_cast<size_t>(std::stoul(std::string(parts)))};
}

// Projectors of vision models and importance matrices are GGUF files, but not models.
bool is_gguf_model(std::string_view file) {
  const std::string name = lower(base_name(file));
  return name.ends_with(".gguf") && !name.starts_with("mmproj") &&
         name.find("imatrix") == name.npos;
}

using GgufModels = std::map<std::string, std::vector<std::string>>;  // model -> its files, sorted

GgufModels group_gguf(const std::vector<std::string>& listing) {
  GgufModels models;
  for (const std::string& file : listing) {
    if (is_gguf_model(file)) models[parse_gguf_name(file).model].push_back(file);
  }
  for (auto& [model, files] : models) std::sort(files.begin(), files.end());
  return models;
}

// `tag` stands in `model` as a whole word: "Q4_K" is not in "x-Q4_K_M", "Q4_0" not in "x-IQ4_0".
bool names_quantisation(std::string_view model, std::string_view tag) {
  const auto joins_before = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  const auto joins_after = [&](char c) { return joins_before(c) || c == '_'; };
  for (size_t at = model.find(tag); at != model.npos; at = model.find(tag, at + 1)) {
    const size_t end = at + tag.size();
    const bool starts = at == 0 || !joins_before(model[at - 1]);
    const bool ends = end == model.size() || !joins_after(model[end]);
    if (starts && ends) return true;
  }
  return false;
}

void check_parts(const std::vector<std::string>& files, const std::string& where) {
  const size_t parts = parse_gguf_name(files[0]).parts;
  for (size_t i = 0; i < files.size(); ++i) {
    const GgufPart part = parse_gguf_name(files[i]);
    if (part.part != i + 1 || part.parts != parts) {
      throw_error(ErrorKind::kNotFound, "{}: part {} of {} of '{}' is missing; found {}", where,
                  i + 1, parts, part.model, join(files));
    }
  }
  if (files.size() != parts) {
    throw_error(ErrorKind::kNotFound, "{}: '{}' has {} of its {} parts: {}", where,
                parse_gguf_name(files[0]).model, files.size(), parts, join(files));
  }
}

std::vector<std::string> first_files(const GgufModels& models) {
  std::vector<std::string> out;
  for (const auto& [model, files] : models) out.push_back(files[0]);
  return out;
}

}  // namespace

bool has_only_gguf(const std::vector<std::string>& listing) {
  return !has_safetensors(listing) && std::any_of(listing.begin(), listing.end(), is_gguf_model);
}

ModelFiles choose_model_files(const std::vector<std::string>& listing, const std::string& where) {
  if (!has_safetensors(listing)) {
    const bool pickles = std::any_of(listing.begin(), listing.end(), [](const std::string& name) {
      return name.ends_with(".bin") || name.ends_with(".pt") || name.ends_with(".pth");
    });
    throw_error(pickles ? ErrorKind::kUnsupported : ErrorKind::kNotFound,
                "{}: model.safetensors (or {}, or a GGUF file) is missing; found {}", where, kIndex,
                join(listing));
  }
  if (!listed(listing, kConfig)) {
    throw_error(ErrorKind::kNotFound, "{}: {} is missing; found {}", where, kConfig, join(listing));
  }
  ModelFiles files;
  for (const std::string& name : listing) {
    if (is_small_file(name)) files.small.push_back(name);
  }
  if (listed(listing, kWholeModel)) {
    files.weights.emplace_back(kWholeModel);
  } else if (listed(listing, kIndex)) {
    files.index = kIndex;
    files.small.push_back(files.index);
  } else {
    std::copy_if(listing.begin(), listing.end(), std::back_inserter(files.weights), is_shard);
  }
  return files;
}

std::vector<std::string> choose_shards(const std::string& index_json,
                                       const std::vector<std::string>& listing,
                                       const std::string& where) {
  const std::string what = fmt::format("{}: {}", where, kIndex);
  const Json index = parse_json(index_json, what);
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (!index.is_object() || map == index.end() || !map->is_object() || map->empty()) {
    throw_error(ErrorKind::kBadFile, "{}: expected an object 'weight_map' of tensor -> file", what);
  }
  std::set<std::string> shards;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string()) {
      throw_error(ErrorKind::kBadFile, "{}: the file of tensor '{}' is not a string", what, tensor);
    }
    shards.insert(file.get<std::string>());
  }
  const std::set<std::string> known(listing.begin(), listing.end());
  for (const std::string& shard : shards) {
    if (!known.contains(shard)) {
      throw_error(ErrorKind::kNotFound, "{}: {} is missing, which {} names", where, shard, kIndex);
    }
  }
  return {shards.begin(), shards.end()};
}

std::vector<std::string> choose_gguf(const std::vector<std::string>& listing,
                                     const std::string& wanted, const std::string& where) {
  const GgufModels models = group_gguf(listing);
  if (models.empty()) {
    throw_error(ErrorKind::kNotFound, "{}: there is no GGUF file; found {}", where, join(listing));
  }
  GgufModels matching;
  for (const auto& [model, files] : models) {
    const bool named = std::find(files.begin(), files.end(), wanted) != files.end();
    if (wanted.empty() || named || names_quantisation(lower(model), lower(wanted))) {
      matching[model] = files;
    }
  }
  if (matching.size() != 1) {
    const char* what = matching.empty() ? "no GGUF file matches" : "several GGUF files match";
    const std::string given = wanted.empty() ? "a name without quantisation" : "'" + wanted + "'";
    throw_error(ErrorKind::kNotFound,
                "{}: {} {}; name one as ORG/REPO:QUANTISATION or ORG/REPO:FILE.gguf out of {}",
                where, what, given, join(first_files(matching.empty() ? models : matching)));
  }
  const std::vector<std::string>& files = matching.begin()->second;
  check_parts(files, where);
  return files;
}

}  // namespace minisgl
