#include "loader/hub.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <mutex>

#include "loader/hub_names.h"
#include "loader/model_store.h"
#include "utils/env.h"
#include "utils/error.h"
#include "utils/files.h"

namespace minisgl {
namespace {
namespace fs = std::filesystem;

std::string path_from(const std::optional<std::string>& value, const std::string& otherwise) {
  return expand_home(value.value_or(otherwise));
}

std::string first_of(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const auto value = env_string(name)) return *value;
  }
  return "";
}

std::string trimmed(std::string text) {
  text.erase(0, std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  return text;
}

// "example.org/" -> "https://example.org"
std::string clean_endpoint(std::string endpoint, const char* from) {
  endpoint = trimmed(endpoint);
  if (endpoint.find("://") == endpoint.npos) endpoint = "https://" + endpoint;
  while (endpoint.ends_with('/')) endpoint.pop_back();
  if (url_origin(endpoint).empty()) {
    throw_error(ErrorKind::kInvalidArgument, "{}: expected an http(s) address, found '{}'", from,
                printable(endpoint));
  }
  return endpoint;
}

std::string token_file(const std::string& path) {
  return file_exists(path) ? trimmed(read_file(path, 65536)) : "";
}

void read_hugging_face_environment(HubOptions& options) {
  const std::string xdg = path_from(env_string("XDG_CACHE_HOME"), "~/.cache");
  const std::string home = path_from(env_string("HF_HOME"), xdg + "/huggingface");
  const std::string cache = first_of({"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"});
  options.cache_dir = cache.empty() ? home + "/hub" : expand_home(cache);
  options.endpoint =
      clean_endpoint(env_string("HF_ENDPOINT").value_or("https://huggingface.co"), "HF_ENDPOINT");
  options.token = trimmed(first_of({"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}));
  if (options.token.empty()) {
    options.token = token_file(path_from(env_string("HF_TOKEN_PATH"), home + "/token"));
  }
  if (env_flag("HF_HUB_DISABLE_IMPLICIT_TOKEN")) options.token.clear();
}

void read_model_scope_environment(HubOptions& options) {
  options.cache_dir = path_from(env_string("MODELSCOPE_CACHE"), "~/.cache/modelscope");
  const std::string endpoint = first_of({"MODELSCOPE_ENDPOINT", "MODELSCOPE_DOMAIN"});
  options.endpoint =
      clean_endpoint(endpoint.empty() ? "https://modelscope.cn" : endpoint, "MODELSCOPE_ENDPOINT");
  options.token = trimmed(env_string("MODELSCOPE_API_TOKEN").value_or(""));
}

int timeout_from_environment(int otherwise) {
  const std::string text = env_string("HF_HUB_DOWNLOAD_TIMEOUT").value_or("");
  if (text.empty()) return otherwise;
  if (text.size() > 6 || text.find_first_not_of("0123456789") != text.npos ||
      std::stoi(text) == 0) {
    throw_error(ErrorKind::kInvalidArgument,
                "HF_HUB_DOWNLOAD_TIMEOUT: expected whole seconds, at least 1, found '{}'", text);
  }
  return std::stoi(text);
}

// A token with a line break in it would end the header and begin another.
void check_token(const std::string& token) {
  const bool plain =
      std::all_of(token.begin(), token.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  if (!plain) {
    throw_error(ErrorKind::kInvalidArgument,
                "the hub token has characters that no token has (blank, control or not ASCII); "
                "check HF_TOKEN (MODELSCOPE_API_TOKEN)");
  }
}

[[noreturn]] void throw_no_such_model(const std::string& name, const std::string& path) {
  std::error_code ignored;
  const std::string absolute = fs::absolute(path, ignored).string();
  throw_error(ErrorKind::kNotFound,
              "there is no model '{}': no file or folder {}, and the name of a model on a hub is "
              "written ORG/REPO, ORG/REPO:QUANTISATION or ORG/REPO@REVISION",
              name, absolute);
}

// The same options, with callbacks that the threads of a download may call.
HubOptions with_guarded_callbacks(HubOptions options) {
  // Shared by the copies of the two callbacks below, whichever lives longest.
  const auto mutex = std::make_shared<std::mutex>();
  if (auto inner = options.on_progress) {
    options.on_progress = [mutex, inner](const DownloadProgress& progress) {
      const std::lock_guard lock(*mutex);
      inner(progress);
    };
  }
  if (auto inner = options.on_message) {
    options.on_message = [mutex, inner](const std::string& line) {
      const std::lock_guard lock(*mutex);
      inner(line);
    };
    options.retry.on_retry = options.on_message;
  }
  return options;
}

}  // namespace

ModelSource parse_model_source(std::string_view text) {
  if (text == "huggingface") return ModelSource::kHuggingFace;
  if (text == "modelscope") return ModelSource::kModelScope;
  throw_error(ErrorKind::kInvalidArgument, "model source '{}': expected huggingface or modelscope",
              text);
}

HubOptions hub_options_from_environment(ModelSource source) {
  HubOptions options;
  options.source = source;
  options.offline = env_flag("HF_HUB_OFFLINE") || env_flag("TRANSFORMERS_OFFLINE");
  options.ca_file = first_of({"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"});
  options.timeout_s = timeout_from_environment(options.timeout_s);
  if (source == ModelSource::kHuggingFace) {
    read_hugging_face_environment(options);
  } else {
    read_model_scope_environment(options);
  }
  return options;
}

std::string resolve_model(const std::string& name, const HubOptions& options) {
  const std::string path = expand_home(name);
  if (!path.empty() && file_exists(path)) return path;
  std::optional<HubName> hub = parse_hub_name(name);
  if (!hub) throw_no_such_model(name, path);
  if (hub->revision.empty()) {
    hub->revision = options.revision;
  } else if (!options.revision.empty() && options.revision != hub->revision) {
    throw_error(ErrorKind::kInvalidArgument, "'{}' and the revision '{}' contradict each other",
                name, options.revision);
  }
  if (!hub->revision.empty() && !is_safe_relative_path(hub->revision)) {
    throw_error(ErrorKind::kInvalidArgument, "'{}' cannot be a revision", printable(hub->revision));
  }
  check_token(options.token);
  const HubOptions guarded = with_guarded_callbacks(options);
  return options.source == ModelSource::kHuggingFace ? resolve_on_hugging_face(*hub, guarded)
                                                     : resolve_on_model_scope(*hub, guarded);
}

}  // namespace minisgl
