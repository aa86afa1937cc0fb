// A model's folder: which files make its tokenizer.
#include <algorithm>
#include <filesystem>

#include "tokenizer/load_json.h"
#include "utils/error.h"
#include "utils/files.h"
#include "utils/gguf.h"
#include "utils/json.h"
#include "utils/log.h"
#include "utils/mmap.h"

namespace minisgl {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxConfigBytes = 64 << 20;
constexpr size_t kMaxTemplateBytes = 4 << 20;

std::string read_if_there(const fs::path& path, size_t max_bytes) {
  return file_exists(path) ? read_file(path, max_bytes) : std::string();
}

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

// tokenizer_config.json, with what the smaller files beside it say. Templates in files of their own
// go before those in the config.
TokenizerConfig read_config(const fs::path& folder) {
  const fs::path path = folder / "tokenizer_config.json";
  TokenizerConfig config =
      parse_tokenizer_config(read_if_there(path, kMaxConfigBytes), path.string());
  const fs::path map_path = folder / "special_tokens_map.json";
  const TokenizerConfig map =
      parse_tokenizer_config(read_if_there(map_path, kMaxConfigBytes), map_path.string());
  if (config.bos_token.empty()) config.bos_token = map.bos_token;
  if (config.eos_token.empty()) config.eos_token = map.eos_token;
  if (config.pad_token.empty()) config.pad_token = map.pad_token;
  if (config.unk_token.empty()) config.unk_token = map.unk_token;

  const fs::path json_template = folder / "chat_template.json";
  if (file_exists(json_template)) {
    const TokenizerConfig wrapped =
        parse_tokenizer_config(read_file(json_template, kMaxTemplateBytes), json_template.string());
    if (wrapped.chat_template) config.chat_template = wrapped.chat_template;
  }
  if (file_exists(folder / "chat_template.jinja")) {
    config.chat_template = read_file(folder / "chat_template.jinja", kMaxTemplateBytes);
  }
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder / "additional_chat_templates", ignored)) {
    if (entry.path().extension() != ".jinja") continue;
    config.named_templates.emplace_back(entry.path().stem().string(),
                                        read_file(entry.path(), kMaxTemplateBytes));
  }
  std::sort(config.named_templates.begin(), config.named_templates.end());
  return config;
}

// Hugging Face's AutoTokenizer goes by config.json, and without one by the class that
// tokenizer_config.json names; LlamaTokenizer then replaces the parts of tokenizer.json by its own,
// whether they fit the vocabulary or not. Folders of models have a config.json.
bool follows_llama_class(const fs::path& folder, const TokenizerConfig& config) {
  return !file_exists(folder / "config.json") && (config.tokenizer_class == "LlamaTokenizer" ||
                                                  config.tokenizer_class == "LlamaTokenizerFast");
}

enum class Given { kFolder, kFile };

std::unique_ptr<Tokenizer> load_json_file(const fs::path& path, Given given, const Logger& log) {
  const fs::path folder = path.parent_path();
  const TokenizerConfig config = read_config(folder);
  const bool as_llama = given == Given::kFolder && follows_llama_class(folder, config);
  if (as_llama) {
    log.warn(
        "{}: without a config.json beside it, tokenizer_class {} decides how text is cut, as in "
        "Hugging Face transformers; to follow tokenizer.json alone, put the model's config.json "
        "there or name that file",
        path.string(), config.tokenizer_class);
  }
  const MappedFile file(path);
  return build_json_tokenizer(text_of(file), config, as_llama, path.string());
}

std::unique_ptr<Tokenizer> load_file(const fs::path& path, Given given, const Logger& log) {
  const std::string extension = path.extension();
  if (extension == ".gguf") return make_gguf_tokenizer(GgufFile::open(path));
  if (extension == ".json") return load_json_file(path, given, log);
  if (extension == ".model") {
    const MappedFile file(path);
    return build_sentencepiece_tokenizer(text_of(file), read_config(path.parent_path()),
                                         path.string());
  }
  throw_error(ErrorKind::kUnsupported,
              "{}: not a tokenizer by its name; expected tokenizer.json, tokenizer.model or a "
              ".gguf file",
              path.string());
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path, const Logger& log) {
  const fs::path given = path;
  std::error_code ignored;
  if (!fs::is_directory(given, ignored)) return load_file(given, Given::kFile, log);
  for (const char* name : {"tokenizer.json", "tokenizer.model"}) {
    if (file_exists(given / name)) return load_file(given / name, Given::kFolder, log);
  }
  throw_error(ErrorKind::kNotFound,
              "{}: neither tokenizer.json nor tokenizer.model is there; name another model's "
              "folder or file with --tokenizer",
              path);
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path) {
  return load_tokenizer(path, Logger());
}

}  // namespace minisgl
