#include "loader/open.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "loader/config_limits.h"
#include "loader/dummy.h"
#include "loader/generation_config.h"
#include "loader/gguf_checkpoint.h"
#include "loader/gguf_config.h"
#include "loader/hf_config.h"
#include "loader/safetensors_checkpoint.h"
#include "utils/error.h"
#include "utils/files.h"
#include "utils/gguf.h"
#include "utils/json.h"

namespace minisgl {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxConfigBytes = 16 << 20;

Json read_config_file(const std::string& path) {
  return parse_json(read_file(path, kMaxConfigBytes), path);
}

// The names of the files in `folder` that `wanted` says yes to, sorted.
template <class Wanted>
std::vector<std::string> files_in(const std::string& folder, Wanted wanted) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (wanted(name)) names.push_back(name);
  }
  if (error) {
    throw_error(ErrorKind::kResource, "{}: cannot list the folder: {}", folder, error.message());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// "…-00002-of-00003.gguf": a shard that its first one opens.
bool is_later_shard(const std::string& name) {
  const size_t of = name.rfind("-of-");
  constexpr size_t kDigits = 5;
  return of != std::string::npos && of >= kDigits + 1 && name[of - kDigits - 1] == '-' &&
         name.compare(of - kDigits, kDigits, "00001") != 0;
}

bool is_gguf_model(const std::string& name) {
  return name.ends_with(".gguf") && !is_later_shard(name) && !name.starts_with("mmproj");
}

FusedRows fused_rows(const ModelConfig& config) {
  return {config.num_qo_heads * config.head_dim, config.num_kv_heads * config.head_dim};
}

GenerationConfig generation_of(const fs::path& folder, const Json& config,
                               const std::string& config_path) {
  const std::string path = (folder / "generation_config.json").string();
  GenerationConfig generation;
  if (file_exists(path)) generation = parse_generation_config(read_config_file(path), path);
  if (generation.eos_token_ids.empty()) {
    // Older models say it in config.json only; multimodal ones in its text part.
    const bool has_text = config.contains("text_config") && config["text_config"].is_object();
    const Json& said =
        !config.contains("eos_token_id") && has_text ? config["text_config"] : config;
    Json eos = Json::object();
    if (said.contains("eos_token_id")) eos["eos_token_id"] = said["eos_token_id"];
    generation.eos_token_ids = parse_generation_config(eos, config_path).eos_token_ids;
  }
  return generation;
}

void use_dummy_weights(OpenedModel& model, const OpenOptions& options) {
  model.checkpoint =
      std::make_unique<DummyCheckpoint>(model.config, model.config.dtype, options.seed);
  model.format = "dummy";
}

// Throws what is there instead of safetensors.
[[noreturn]] void throw_no_weights(const std::string& folder) {
  const auto pickles = files_in(folder, [](const std::string& name) {
    return name.ends_with(".bin") || name.ends_with(".pt") || name.ends_with(".pth");
  });
  if (!pickles.empty()) {
    throw_error(ErrorKind::kUnsupported,
                "{}: has PyTorch pickles only ({}), which can run code when loaded; convert them "
                "to safetensors",
                folder, pickles.front());
  }
  throw_error(ErrorKind::kNotFound,
              "{}: has no weights, expected model.safetensors, model.safetensors.index.json or a "
              ".gguf file",
              folder);
}

std::unique_ptr<SafetensorsCheckpoint> open_safetensors(const std::string& folder,
                                                        FusedRows fused) {
  const auto indexes = files_in(
      folder, [](const std::string& name) { return name.ends_with(".safetensors.index.json"); });
  const auto files =
      files_in(folder, [](const std::string& name) { return name.ends_with(".safetensors"); });
  const auto path = [&](const std::string& name) { return (fs::path(folder) / name).string(); };
  const auto has = [&](const std::vector<std::string>& names, const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  // The usual names first, as others may lie beside them (consolidated.safetensors, adapters).
  if (has(files, "model.safetensors")) {
    return SafetensorsCheckpoint::open(path("model.safetensors"), fused);
  }
  if (has(indexes, "model.safetensors.index.json")) {
    return SafetensorsCheckpoint::open_index(path("model.safetensors.index.json"), fused);
  }
  if (indexes.size() == 1) return SafetensorsCheckpoint::open_index(path(indexes[0]), fused);
  if (files.size() == 1) return SafetensorsCheckpoint::open(path(files[0]), fused);
  if (files.empty()) throw_no_weights(folder);
  throw_error(
      ErrorKind::kNotFound,
      "{}: has {} safetensors files ({}) and no model.safetensors.index.json that says what "
      "is in them; download it too",
      folder, files.size(), fmt::join(files, ", "));
}

OpenedModel open_gguf(const std::string& path, const OpenOptions& options) {
  OpenedModel model;
  GgufFile file = GgufFile::open(path);
  model.config = config_from_gguf(file);
  model.generation = generation_from_gguf(file);
  check_eos(model.generation, model.config.vocab_size, path);
  model.tokenizer_path = path;
  if (options.dummy_weight) {
    use_dummy_weights(model, options);
  } else {
    model.checkpoint = std::make_unique<GgufCheckpoint>(std::move(file), model.config);
    model.format = "gguf";
  }
  return model;
}

// The folder's only GGUF model.
OpenedModel open_gguf_folder(const std::string& folder, const std::vector<std::string>& files,
                             const OpenOptions& options) {
  if (files.size() > 1) {
    throw_error(ErrorKind::kInvalidArgument, "{}: has {} GGUF files ({}), name one of them", folder,
                files.size(), fmt::join(files, ", "));
  }
  return open_gguf((fs::path(folder) / files.front()).string(), options);
}

// `config_path` in `folder`.
OpenedModel open_hf(const std::string& folder, const std::string& config_path,
                    const OpenOptions& options) {
  OpenedModel model;
  const Json json = read_config_file(config_path);
  model.config = parse_hf_config(json, config_path);
  model.generation = generation_of(folder, json, config_path);
  check_eos(model.generation, model.config.vocab_size, config_path);
  model.tokenizer_path = folder;
  if (options.dummy_weight) {
    use_dummy_weights(model, options);
    return model;
  }
  auto checkpoint = open_safetensors(folder, fused_rows(model.config));
  if (!hf_config_has_dtype(json)) model.config.dtype = checkpoint->first_dtype();
  model.checkpoint = std::move(checkpoint);
  model.format = "safetensors";
  return model;
}

OpenedModel open_folder(const std::string& folder, const OpenOptions& options) {
  const std::string config_path = (fs::path(folder) / "config.json").string();
  const auto ggufs = files_in(folder, is_gguf_model);
  const auto has_safetensors = !files_in(folder, [](const std::string& name) {
                                  return name.ends_with(".safetensors");
                                }).empty();
  if (file_exists(config_path) && (has_safetensors || ggufs.empty() || options.dummy_weight)) {
    return open_hf(folder, config_path, options);
  }
  if (!ggufs.empty()) return open_gguf_folder(folder, ggufs, options);
  throw_error(ErrorKind::kNotFound,
              "{}: has no config.json and no .gguf file, expected a model's folder", folder);
}

OpenedModel open_file(const std::string& path, const OpenOptions& options) {
  if (path.ends_with(".safetensors")) {
    throw_error(ErrorKind::kInvalidArgument,
                "{}: is a file of weights alone, name the folder with its config.json", path);
  }
  if (path.ends_with(".json") && options.dummy_weight) {
    const std::string folder = fs::path(path).parent_path().string();
    return open_hf(folder.empty() ? "." : folder, path, options);
  }
  if (path.ends_with(".bin") || path.ends_with(".pt") || path.ends_with(".pth")) {
    throw_error(ErrorKind::kUnsupported,
                "{}: is a PyTorch pickle, which can run code when loaded; convert it to "
                "safetensors",
                path);
  }
  return open_gguf(path, options);
}

}  // namespace

OpenedModel open_model(const std::string& path, const OpenOptions& options) {
  if (!file_exists(path)) {
    throw_error(ErrorKind::kNotFound, "{}: no such file or folder", path);
  }
  return fs::is_directory(path) ? open_folder(path, options) : open_file(path, options);
}

}  // namespace minisgl
