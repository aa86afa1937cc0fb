#include "loader/model_store.h"

#include <algorithm>
#include <filesystem>

#include "loader/hub_files.h"
#include "utils/error.h"
#include "utils/files.h"

namespace minisgl {
namespace fs = std::filesystem;

std::string fetch_model(ModelStore& store, const std::string& gguf, const std::string& where) {
  if (!gguf.empty() || has_only_gguf(store.listing())) {
    const std::vector<std::string> files = choose_gguf(store.listing(), gguf, where);
    store.fetch(files);
    return store.folder() + "/" + files[0];
  }
  ModelFiles files = choose_model_files(store.listing(), where);
  store.fetch(files.small);
  if (!files.index.empty()) {
    const std::string index = read_file(store.folder() + "/" + files.index);
    files.weights = choose_shards(index, store.listing(), where);
  }
  store.fetch(files.weights);
  return store.folder();
}

FolderStore::FolderStore(std::string folder) : folder_(std::move(folder)) {
  std::error_code error;
  fs::recursive_directory_iterator entry(folder_, error), end;
  for (; !error && entry != end; entry.increment(error)) {
    // Links are followed: in a cache they lead to the blobs, and a dangling one is no file.
    std::error_code ignored;
    if (!entry->is_regular_file(ignored)) continue;
    listing_.push_back(entry->path().lexically_relative(folder_).generic_string());
  }
  std::sort(listing_.begin(), listing_.end());
}

TransferCount::TransferCount(std::string id, size_t files, uint64_t total,
                             const HubOptions& options)
    : id_(std::move(id)), total_(total), options_(options), bytes_(files, 0) {}

void TransferCount::set(size_t file, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_[file] = bytes;
  report();
}

void TransferCount::file_done() {
  const std::lock_guard lock(mutex_);
  ++files_done_;
  report();
}

void TransferCount::report() {
  if (!options_.on_progress) return;
  uint64_t done = 0;
  for (const uint64_t bytes : bytes_) done += bytes;
  options_.on_progress({.label = fmt::format("{}: {} of {} files", id_, files_done_, bytes_.size()),
                        .done = done,
                        .total = total_});
}

std::string describe(const HubName& name) {
  return name.revision.empty() ? name.id() : name.id() + "@" + name.revision;
}

std::vector<std::string> checked_listing(std::vector<std::string> names, const std::string& where) {
  for (const std::string& name : names) {
    if (!is_safe_relative_path(name)) {
      throw_error(ErrorKind::kBadFile,
                  "{}: the server lists a file '{}', which would be written outside its folder; "
                  "nothing was downloaded",
                  where, printable(name));
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

HttpOptions http_options(const HubOptions& options) {
  HttpOptions http{.timeout_s = options.timeout_s,
                   .token = options.token,
                   .token_url = options.endpoint,
                   .cookie = "",
                   .ca_file = options.ca_file,
                   .cancelled = options.cancelled};
  // ModelScope's file service knows the token as a session's cookie.
  if (options.source == ModelSource::kModelScope && !options.token.empty()) {
    http.cookie = "m_session_id=" + options.token;
  }
  return http;
}

void make_folders(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) {
    throw_error(ErrorKind::kResource, "{}: cannot make this folder: {}", path, error.message());
  }
}

void tell(const HubOptions& options, const std::string& line) {
  if (options.on_message) options.on_message(line);
}

}  // namespace minisgl
