// From the name of a model to files on disk: local paths, the Hugging Face hub, ModelScope.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "loader/download.h"

namespace minisgl {

enum class ModelSource { kHuggingFace, kModelScope };

// "huggingface" or "modelscope". Errors: kInvalidArgument.
ModelSource parse_model_source(std::string_view text);

// The files being fetched together, as one transfer.
struct DownloadProgress {
  std::string label;   // "ORG/REPO: 3 of 10 files"
  uint64_t done = 0;   // bytes
  uint64_t total = 0;  // bytes; 0 where the server does not tell
};

struct HubOptions {
  ModelSource source = ModelSource::kHuggingFace;
  std::string endpoint = "https://huggingface.co";
  std::string cache_dir = "";  // Hugging Face: holds models--ORG--REPO. ModelScope: holds models/
  std::string token = "";      // sent to the endpoint's host alone; "" for none
  std::string revision = "";   // branch, tag or commit where the name has none; "" for the default
  bool offline = false;        // the cache only
  int connections = 4;         // files fetched at the same time
  int timeout_s = 30;          // without a byte from the server
  std::string ca_file = "";    // PEM, for a company's proxy; "" for the system's authorities
  RetryOptions retry = {};
  // May be empty. Called from the downloading threads, one call at a time.
  std::function<void(const DownloadProgress&)> on_progress = {};
  std::function<void(const std::string& line)> on_message = {};
  // May be empty. Called from the downloading threads, several at once.
  std::function<bool()> cancelled = {};
};

// What the hubs' own Python clients read: HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME,
// XDG_CACHE_HOME, HF_ENDPOINT, HF_TOKEN, HUGGING_FACE_HUB_TOKEN, HF_TOKEN_PATH,
// HF_HUB_DISABLE_IMPLICIT_TOKEN, HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE, HF_HUB_DOWNLOAD_TIMEOUT;
// MODELSCOPE_CACHE, MODELSCOPE_ENDPOINT, MODELSCOPE_DOMAIN, MODELSCOPE_API_TOKEN; and of other
// HTTP clients SSL_CERT_FILE, REQUESTS_CA_BUNDLE and CURL_CA_BUNDLE.
HubOptions hub_options_from_environment(ModelSource source = ModelSource::kHuggingFace);

// The folder (config.json, tokenizer, *.safetensors) or GGUF file of a model; of a split GGUF the
// first part, with the others beside it.
//   an existing file or folder ("~" is the home folder)  returned as it is
//   ORG/REPO[@REVISION]              safetensors, or the only GGUF model of the repository
//   ORG/REPO:QUANTISATION[@REVISION] the GGUF model of that quantisation, also :FILE.gguf
// What is missing in the cache is downloaded. Several processes and threads may do so at once.
// Errors: kNotFound, kInvalidArgument, kUnsupported, kNetwork, kBadFile, kResource (also a
// repository that the token may not read), kCancelled.
std::string resolve_model(const std::string& name, const HubOptions& options);

}  // namespace minisgl
