// Models of a Hugging Face hub: the listing of a revision, then the files into the shared cache.
#include <filesystem>
#include <optional>

#include "loader/download.h"
#include "loader/hub_cache.h"
#include "loader/hub_names.h"
#include "loader/model_store.h"
#include "utils/error.h"
#include "utils/files.h"
#include "utils/json.h"

namespace minisgl {
namespace {

constexpr size_t kMaxListingBytes = size_t{64} << 20;

std::string token_hint(const HubOptions& options) {
  return options.token.empty() ? "no token is set (HF_TOKEN)" : "the token in use has no access";
}

// What a status that is not 2xx means for the person who asked.
[[noreturn]] void throw_status(const HttpResponse& response, const HubName& name,
                               const HubOptions& options, const std::string& file) {
  const std::string code = response.header("x-error-code").value_or("");
  const std::string said = printable(response.header("x-error-message").value_or(""));
  const std::string says = said.empty() ? "" : fmt::format(" (the server says: {})", said);
  const std::string id = name.id();
  const int status = response.status;
  const bool refused = status == 401 || status == 403;
  if (code == "GatedRepo" || (refused && said.find("gated") != said.npos)) {
    throw_error(ErrorKind::kResource,
                "{} is gated{}; accept its terms at {}/{} and set HF_TOKEN to a token of that "
                "account: {}",
                id, says, options.endpoint, id, token_hint(options));
  }
  if (code == "RevisionNotFound") {
    throw_error(ErrorKind::kNotFound, "{} has no revision '{}'; expected a branch, tag or commit",
                id, name.revision);
  }
  if (code == "EntryNotFound" || (status == 404 && !file.empty())) {
    throw_error(ErrorKind::kNotFound, "{}: the server has no file '{}'", describe(name), file);
  }
  if (status == 403 || (status == 401 && !options.token.empty() && code != "RepoNotFound")) {
    throw_error(ErrorKind::kResource, "{}: {} answered {}{}: {}", describe(name), options.endpoint,
                status, says, token_hint(options));
  }
  if (status == 404 || status == 401) {
    throw_error(ErrorKind::kNotFound,
                "'{}' is neither a local path nor a repository that {} shows{}; check the "
                "spelling; if it is private: {}",
                id, options.endpoint, says, token_hint(options));
  }
  throw_error(ErrorKind::kNetwork, "{}: {} answered {}{}", describe(name),
              url_for_display(response.url), status, says);
}

struct Revision {
  std::string commit;
  std::vector<std::string> files;
};

Revision parse_listing(const HttpResponse& response, const HubName& name) {
  const std::string where = describe(name);
  const Json json =
      parse_json(response.body, where + ": the server's list of files", ErrorKind::kNetwork);
  const auto text = [&](const Json& object, const char* key) -> std::string {
    if (!object.is_object() || !object.contains(key) || !object[key].is_string()) {
      throw_error(ErrorKind::kNetwork,
                  "{}: {} sent a list of files without '{}'; is HF_ENDPOINT a Hugging Face hub?",
                  where, url_for_display(response.url), key);
    }
    return object[key].get<std::string>();
  };
  Revision revision{.commit = text(json, "sha"), .files = {}};
  if (!is_plain_name(revision.commit)) {
    throw_error(ErrorKind::kBadFile, "{}: '{}' is not a commit", where, printable(revision.commit));
  }
  if (json.contains("siblings") && json["siblings"].is_array()) {
    for (const Json& file : json["siblings"]) revision.files.push_back(text(file, "rfilename"));
  }
  revision.files = checked_listing(std::move(revision.files), where);
  return revision;
}

Revision ask_revision(const HubName& name, const HubOptions& options) {
  HttpClient client(http_options(options));
  const std::string url = fmt::format("{}/api/models/{}/revision/{}", options.endpoint, name.id(),
                                      url_encode(name.revision));
  const HttpResponse response = with_retries([&] { return client.get(url, kMaxListingBytes); },
                                             describe(name), options.retry, options.cancelled);
  if (response.status / 100 != 2) throw_status(response, name, options, "");
  return parse_listing(response, name);
}

// What the server tells of a file without sending it.
struct RemoteFile {
  std::string file, url, etag;
  std::optional<uint64_t> size;
  std::string sha256;    // of files in large-file storage, whose etag it is
  std::string if_range;  // the server's own ETag where it sends the file itself
};

std::string plain_etag(std::string etag) {
  if (etag.starts_with("W/")) etag.erase(0, 2);
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') {
    etag = etag.substr(1, etag.size() - 2);
  }
  return etag;
}

bool is_sha256(const std::string& etag) {
  return etag.size() == 64 && etag.find_first_not_of("0123456789abcdef") == etag.npos;
}

std::optional<uint64_t> parse_size(const std::optional<std::string>& text) {
  if (!text || text->empty() || text->size() > 18 ||
      text->find_first_not_of("0123456789") != text->npos) {
    return std::nullopt;
  }
  return std::stoull(*text);
}

class HuggingFaceStore : public ModelStore {
 public:
  HuggingFaceStore(const HubName& name, Revision revision, const HubCache& cache,
                   const HubOptions& options)
      : name_(name), revision_(std::move(revision)), cache_(cache), options_(options) {}

  const std::vector<std::string>& listing() const override { return revision_.files; }
  std::string folder() const override { return cache_.snapshot(revision_.commit); }

  void fetch(const std::vector<std::string>& files) override {
    std::vector<RemoteFile> wanted;
    for (const std::string& file : files) {
      if (!file_exists(pointer(file))) wanted.emplace_back().file = file;
    }
    if (wanted.empty()) return;
    cache_.prepare();
    run_in_parallel(wanted.size(), options_.connections, [&](size_t i) { ask(wanted[i]); });

    uint64_t total = 0, missing = 0;
    bool sizes_known = true;
    for (const RemoteFile& remote : wanted) {
      sizes_known = sizes_known && remote.size.has_value();
      total += remote.size.value_or(0);
      missing += remote.size.value_or(0) - std::min(remote.size.value_or(0), on_disk(remote));
    }
    check_disk_space(options_.cache_dir, missing, describe(name_));
    TransferCount count(name_.id(), wanted.size(), sizes_known ? total : 0, options_);
    run_in_parallel(wanted.size(), options_.connections, [&](size_t i) {
      get(wanted[i], [&](uint64_t bytes) { count.set(i, bytes); });
      count.file_done();
    });
  }

 private:
  std::string pointer(const std::string& file) const {
    return cache_.pointer(revision_.commit, file);
  }
  std::string what(const RemoteFile& remote) const { return describe(name_) + ": " + remote.file; }

  uint64_t on_disk(const RemoteFile& remote) const {
    std::error_code none;
    for (const std::string& path : {cache_.blob(remote.etag), cache_.incomplete(remote.etag)}) {
      const uint64_t size = std::filesystem::file_size(path, none);
      if (!none) return size;
    }
    return 0;
  }

  void ask(RemoteFile& remote) {
    HttpClient client(http_options(options_));
    // By commit, so that all files are of one version whatever is pushed meanwhile.
    remote.url = fmt::format("{}/{}/resolve/{}/{}", options_.endpoint, name_.id(), revision_.commit,
                             url_encode(remote.file, /*keep_slash=*/true));
    const HttpResponse head = with_retries([&] { return client.head(remote.url); }, what(remote),
                                           options_.retry, options_.cancelled);
    const bool elsewhere = head.status / 100 == 3;  // in another host's storage
    if (head.status / 100 != 2 && !elsewhere) throw_status(head, name_, options_, remote.file);

    const std::string own_etag = head.header("etag").value_or("");
    remote.etag = plain_etag(head.header("x-linked-etag").value_or(own_etag));
    if (!is_plain_name(remote.etag)) {
      throw_error(ErrorKind::kNetwork,
                  "{}: expected an ETag that can name a file, found '{}'; is HF_ENDPOINT a Hugging "
                  "Face hub?",
                  what(remote), printable(remote.etag));
    }
    remote.size = parse_size(head.header("x-linked-size"));
    if (!remote.size && !elsewhere) remote.size = parse_size(head.header("content-length"));
    if (is_sha256(remote.etag)) remote.sha256 = remote.etag;
    if (!elsewhere && own_etag.starts_with('"')) remote.if_range = own_etag;
  }

  bool have_blob(const RemoteFile& remote) const {
    std::error_code error;
    const uint64_t size = std::filesystem::file_size(cache_.blob(remote.etag), error);
    return !error && (!remote.size || size == *remote.size);
  }

  void get(const RemoteFile& remote, const OnBytes& on_bytes) {
    const FileLock lock(cache_.lock(remote.etag), options_.cancelled, [&] {
      tell(options_, what(remote) + ": waiting for another process that downloads it");
    });
    if (file_exists(pointer(remote.file))) return;  // made while waiting
    if (!have_blob(remote)) {
      HttpClient client(http_options(options_));
      const DownloadJob job{.url = remote.url,
                            .what = what(remote),
                            .path = cache_.blob(remote.etag),
                            .partial_path = cache_.incomplete(remote.etag),
                            .size = remote.size,
                            .sha256 = remote.sha256,
                            .etag = remote.if_range};
      download_file(client, job, options_.retry, on_bytes, [&](const HttpResponse& response) {
        throw_status(response, name_, options_, remote.file);
      });
    }
    if (remote.size) on_bytes(*remote.size);
    cache_.link(revision_.commit, remote.file, remote.etag);
  }

  const HubName& name_;
  const Revision revision_;
  const HubCache& cache_;
  const HubOptions& options_;
};

// Errors: kNotFound says what the cache lacks.
std::string resolve_in_cache(const HubName& name, const HubCache& cache,
                             const HubOptions& options) {
  const std::optional<std::string> commit = cache.commit_of(name.revision);
  const std::string hint = "unset HF_HUB_OFFLINE to download it";
  if (!commit || !file_exists(cache.snapshot(*commit))) {
    throw_error(ErrorKind::kNotFound, "{} is not in the cache {}; {}", describe(name),
                options.cache_dir, hint);
  }
  FolderStore store(cache.snapshot(*commit));
  return fetch_model(
      store, name.gguf,
      fmt::format("{} in the cache {} ({})", describe(name), options.cache_dir, hint));
}

}  // namespace

std::string resolve_on_hugging_face(const HubName& asked, const HubOptions& options) {
  HubName name = asked;
  if (name.revision.empty()) name.revision = "main";
  const HubCache cache(options.cache_dir, name.org, name.repo);
  if (options.offline) return resolve_in_cache(name, cache, options);

  std::optional<Revision> revision;
  try {
    revision = ask_revision(name, options);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kNetwork) throw;
    std::string path;
    try {
      path = resolve_in_cache(name, cache, options);
    } catch (const Error&) {
      throw error;  // the network is what to repair
    }
    tell(options, fmt::format("{}; going on with what is in the cache", error.what()));
    return path;
  }
  const std::string commit = revision->commit;
  HuggingFaceStore store(name, std::move(*revision), cache, options);
  std::string path = fetch_model(store, name.gguf, describe(name));
  try {
    cache.remember(name.revision, commit);
  } catch (const std::exception& error) {  // a shared cache may be read-only
    tell(options,
         fmt::format("{}: cannot note its commit in the cache: {}", describe(name), error.what()));
  }
  return path;
}

}  // namespace minisgl
