// Models of ModelScope. Its client's cache has plain folders, no blobs and links:
//   models/ORG--REPO/snapshots/REVISION/FILE     what we read and write
//   models/ORG/REPO, hub/models/ORG/REPO         of its older clients, "." in REPO as "___":
//                                                used where they exist, for the default revision
//   .minisgl/ORG--REPO/REVISION/FILE.*           ours: locks, partial files, checksums seen
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "loader/download.h"
#include "loader/model_store.h"
#include "utils/digest.h"
#include "utils/error.h"
#include "utils/files.h"
#include "utils/json.h"

namespace minisgl {
namespace {
namespace fs = std::filesystem;

constexpr size_t kMaxListingBytes = size_t{64} << 20;
constexpr const char* kDefaultRevision = "master";

struct RemoteFile {
  std::optional<uint64_t> size;
  std::string sha256;
};
using RemoteFiles = std::map<std::string, RemoteFile>;

[[noreturn]] void throw_status(const HttpResponse& response, const HubName& name,
                               const HubOptions& options, const std::string& said) {
  const std::string says =
      said.empty() ? "" : fmt::format(" (the server says: {})", printable(said));
  const char* token = options.token.empty() ? "no token is set (MODELSCOPE_API_TOKEN)"
                                            : "the token in use has no access";
  if (response.status == 401 || response.status == 403) {
    throw_error(ErrorKind::kResource, "{}: {} answered {}{}: {}", describe(name), options.endpoint,
                response.status, says, token);
  }
  if (response.status / 100 == 2 || response.status == 404) {
    throw_error(ErrorKind::kNotFound,
                "'{}' is neither a local path nor a model that {} shows{}; check the spelling and "
                "the revision; if it is private: {}",
                describe(name), options.endpoint, says, token);
  }
  throw_error(ErrorKind::kNetwork, "{}: {} answered {}{}", describe(name),
              url_for_display(response.url), response.status, says);
}

std::string server_message(const std::string& body) {
  const Json json = Json::parse(body.substr(0, 65536), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("Message") || !json["Message"].is_string()) return "";
  return json["Message"].get<std::string>();
}

RemoteFiles parse_listing(const HttpResponse& response, const HubName& name,
                          const HubOptions& options) {
  const Json json = parse_json(response.body, describe(name) + ": the server's list of files",
                               ErrorKind::kNetwork);
  const Json* files = nullptr;
  if (json.is_object() && json.contains("Data") && json["Data"].is_object() &&
      json["Data"].contains("Files") && json["Data"]["Files"].is_array()) {
    files = &json["Data"]["Files"];
  }
  if (!files) throw_status(response, name, options, server_message(response.body));
  RemoteFiles out;
  for (const Json& file : *files) {
    if (!file.is_object() || !file.contains("Path") || !file["Path"].is_string()) {
      throw_error(ErrorKind::kNetwork, "{}: the server lists a file without 'Path'",
                  describe(name));
    }
    if (file.contains("Type") && file["Type"] == "tree") continue;
    RemoteFile& remote = out[file["Path"].get<std::string>()];
    if (file.contains("Size") && file["Size"].is_number_unsigned()) {
      remote.size = file["Size"].get<uint64_t>();
    }
    if (file.contains("Sha256") && file["Sha256"].is_string()) {
      remote.sha256 = file["Sha256"].get<std::string>();
      std::transform(remote.sha256.begin(), remote.sha256.end(), remote.sha256.begin(),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    }
  }
  return out;
}

RemoteFiles ask_files(const HubName& name, const HubOptions& options) {
  HttpClient client(http_options(options));
  const std::string url = fmt::format("{}/api/v1/models/{}/repo/files?Revision={}&Recursive=true",
                                      options.endpoint, name.id(), url_encode(name.revision));
  const HttpResponse response = with_retries([&] { return client.get(url, kMaxListingBytes); },
                                             describe(name), options.retry, options.cancelled);
  if (response.status / 100 != 2) {
    throw_status(response, name, options, server_message(response.body));
  }
  return parse_listing(response, name, options);
}

std::string find_folder(const HubName& name, const std::string& cache_dir) {
  std::string repo = name.repo;
  for (size_t at = repo.find('.'); at != repo.npos; at = repo.find('.', at)) {
    repo.replace(at, 1, "___");
  }
  if (name.revision == kDefaultRevision) {
    for (const char* base : {"/models/", "/hub/models/"}) {
      const std::string older = cache_dir + base + name.org + "/" + repo;
      std::error_code ignored;
      if (fs::is_directory(older, ignored) && !fs::is_empty(older, ignored)) return older;
    }
  }
  return fmt::format("{}/models/{}--{}/snapshots/{}", cache_dir, name.org, name.repo,
                     name.revision);
}

// Identifies the bytes of a file without reading them; "" where there is no file.
std::string file_stamp(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return "";
  return fmt::format("{} {}.{:09}", info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

class ModelScopeStore : public ModelStore {
 public:
  ModelScopeStore(const HubName& name, RemoteFiles files, const HubOptions& options)
      : name_(name),
        options_(options),
        files_(std::move(files)),
        folder_(find_folder(name, options.cache_dir)),
        notes_(fmt::format("{}/.minisgl/{}--{}/{}", options.cache_dir, name.org, name.repo,
                           name.revision)) {
    std::vector<std::string> names;
    for (const auto& [file, remote] : files_) names.push_back(file);
    listing_ = checked_listing(std::move(names), describe(name_));
  }

  const std::vector<std::string>& listing() const override { return listing_; }
  std::string folder() const override { return folder_; }

  void fetch(const std::vector<std::string>& files) override {
    std::vector<std::string> wanted;
    uint64_t total = 0;
    bool sizes_known = true;
    for (const std::string& file : files) {
      if (is_current(file)) continue;
      wanted.push_back(file);
      total += files_.at(file).size.value_or(0);
      sizes_known = sizes_known && files_.at(file).size.has_value();
    }
    if (wanted.empty()) return;
    make_folders(notes_);
    make_folders(folder_);
    check_disk_space(folder_, total - std::min(total, partial_bytes(wanted)), describe(name_));
    TransferCount count(name_.id(), wanted.size(), sizes_known ? total : 0, options_);
    run_in_parallel(wanted.size(), options_.connections, [&](size_t i) {
      get(wanted[i], [&](uint64_t bytes) { count.set(i, bytes); });
      count.file_done();
    });
  }

 private:
  std::string path(const std::string& file) const { return folder_ + "/" + file; }
  std::string note(const std::string& file, const char* end) const {
    return notes_ + "/" + file + end;
  }

  uint64_t partial_bytes(const std::vector<std::string>& files) const {
    uint64_t bytes = 0;
    for (const std::string& file : files) {
      std::error_code error;
      const uint64_t size = fs::file_size(note(file, ".incomplete"), error);
      if (!error) bytes += size;
    }
    return bytes;
  }

  // A branch moves on and the folder does not say of which commit its files are: sizes and
  // checksums decide. A checksum is computed once and noted with the file's size and time.
  bool is_current(const std::string& file) const {
    const RemoteFile& remote = files_.at(file);
    const std::string stamp = file_stamp(path(file));
    std::error_code error;
    if (stamp.empty() || (remote.size && fs::file_size(path(file), error) != *remote.size)) {
      return false;
    }
    if (remote.sha256.empty()) return true;
    const std::string expected = remote.sha256 + " " + stamp;
    const std::string seen = note(file, ".sha256");
    if (file_exists(seen) && read_file(seen, 4096) == expected) return true;
    if (sha256_of_file(path(file)) != remote.sha256) return false;
    remember(file);
    return true;
  }

  // Best effort: without the note the file is only hashed again.
  void remember(const std::string& file) const {
    const std::string seen = note(file, ".sha256");
    try {
      make_folders(fs::path(seen).parent_path().string());
      write_file(seen, files_.at(file).sha256 + " " + file_stamp(path(file)));
    } catch (const std::exception&) {
    }
  }

  void get(const std::string& file, const OnBytes& on_bytes) {
    const std::string what = describe(name_) + ": " + file;
    const FileLock lock(note(file, ".lock"), options_.cancelled, [&] {
      tell(options_, what + ": waiting for another process that downloads it");
    });
    if (is_current(file)) return;  // made while waiting
    const RemoteFile& remote = files_.at(file);
    make_folders(fs::path(path(file)).parent_path().string());
    if (remote.size == uint64_t{0}) {
      write_file(path(file), "");
      return;
    }
    HttpClient client(http_options(options_));
    const DownloadJob job{
        .url = fmt::format("{}/api/v1/models/{}/repo?Revision={}&FilePath={}", options_.endpoint,
                           name_.id(), url_encode(name_.revision), url_encode(file)),
        .what = what,
        .path = path(file),
        .partial_path = note(file, ".incomplete"),
        .size = remote.size,
        .sha256 = remote.sha256,
        .etag = ""};
    download_file(client, job, options_.retry, on_bytes, [&](const HttpResponse& response) {
      throw_status(response, name_, options_, server_message(response.body));
    });
    if (!remote.sha256.empty()) remember(file);
  }

  const HubName& name_;
  const HubOptions& options_;
  const RemoteFiles files_;
  const std::string folder_, notes_;
  std::vector<std::string> listing_;
};

std::string resolve_in_cache(const HubName& name, const HubOptions& options) {
  FolderStore store(find_folder(name, options.cache_dir));
  const char* hint = "unset HF_HUB_OFFLINE to download it";
  if (store.listing().empty()) {
    throw_error(ErrorKind::kNotFound, "{} is not in the ModelScope cache {}; {}", describe(name),
                options.cache_dir, hint);
  }
  return fetch_model(store, name.gguf,
                     fmt::format("{} in {} ({})", describe(name), store.folder(), hint));
}

}  // namespace

std::string resolve_on_model_scope(const HubName& asked, const HubOptions& options) {
  HubName name = asked;
  if (name.revision.empty()) name.revision = kDefaultRevision;
  if (options.offline) return resolve_in_cache(name, options);
  RemoteFiles files;
  try {
    files = ask_files(name, options);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kNetwork) throw;
    std::string path;
    try {
      path = resolve_in_cache(name, options);
    } catch (const Error&) {
      throw error;  // the network is what to repair
    }
    tell(options, fmt::format("{}; going on with what is in the cache", error.what()));
    return path;
  }
  ModelScopeStore store(name, std::move(files), options);
  return fetch_model(store, name.gguf, describe(name));
}

}  // namespace minisgl
