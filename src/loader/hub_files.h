// Which files of a repository make up a model. Pure functions of the list of file names.
#pragma once

#include <string>
#include <vector>

namespace minisgl {

// A safetensors model comes in two steps, because an index names its shards.
struct ModelFiles {
  std::vector<std::string> small;    // configuration, tokenizer, chat template, index
  std::vector<std::string> weights;  // empty when `index` says them
  std::string index;                 // "model.safetensors.index.json", "" where there is none
};

// True where no safetensors weights, but GGUF files are listed.
bool has_only_gguf(const std::vector<std::string>& listing);

// `where` begins the messages: "Qwen/Qwen3-0.6B@main".
// Errors: kNotFound names the file that is missing, kUnsupported when there are only weights of
// another kind (PyTorch pickles are never loaded).
ModelFiles choose_model_files(const std::vector<std::string>& listing, const std::string& where);

// The shards that the text of an index file names, each once and in order. Errors: kBadFile;
// kNotFound when `listing` lacks one.
std::vector<std::string> choose_shards(const std::string& index_json,
                                       const std::vector<std::string>& listing,
                                       const std::string& where);

// The GGUF file of the wanted quantisation ("Q4_K_M", any case) or name; a split model gives all
// its parts in order, the first part first. wanted "" takes the only model that there is.
// Errors: kNotFound when none or several match, with the list of what there is.
std::vector<std::string> choose_gguf(const std::vector<std::string>& listing,
                                     const std::string& wanted, const std::string& where);

}  // namespace minisgl
