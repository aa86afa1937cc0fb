#include "loader/hub_cache.h"

#include <filesystem>

#include "loader/hub_names.h"
#include "loader/model_store.h"
#include "utils/error.h"
#include "utils/files.h"

namespace minisgl {
namespace fs = std::filesystem;

HubCache::HubCache(std::string cache_dir, const std::string& org, const std::string& repo)
    : cache_dir_(std::move(cache_dir)),
      folder_name_("models--" + org + "--" + repo),
      repo_dir_(cache_dir_ + "/" + folder_name_) {}

std::string HubCache::snapshot(const std::string& commit) const {
  return repo_dir_ + "/snapshots/" + commit;
}

std::string HubCache::pointer(const std::string& commit, const std::string& file) const {
  return snapshot(commit) + "/" + file;
}

std::string HubCache::blob(const std::string& etag) const { return repo_dir_ + "/blobs/" + etag; }

std::string HubCache::lock(const std::string& etag) const {
  return cache_dir_ + "/.locks/" + folder_name_ + "/" + etag + ".lock";
}

std::optional<std::string> HubCache::commit_of(const std::string& revision) const {
  if (is_commit_hash(revision)) return revision;
  const std::string path = repo_dir_ + "/refs/" + revision;
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return std::nullopt;
  std::string commit = read_file(path, 1024);
  commit.erase(commit.find_last_not_of(" \r\n") + 1);
  if (!is_plain_name(commit)) return std::nullopt;
  return commit;
}

void HubCache::remember(const std::string& revision, const std::string& commit) const {
  if (commit_of(revision) == commit) return;
  const std::string path = repo_dir_ + "/refs/" + revision;
  make_folders(fs::path(path).parent_path().string());
  write_file(path, commit);
}

void HubCache::link(const std::string& commit, const std::string& file,
                    const std::string& etag) const {
  const fs::path from = pointer(commit, file);
  make_folders(from.parent_path().string());
  std::error_code error;
  fs::remove(from, error);  // a link whose blob is gone
  fs::create_symlink(fs::path(blob(etag)).lexically_relative(from.parent_path()), from, error);
  if (!error) return;
  fs::rename(blob(etag), from, error);
  if (error) {
    throw_error(ErrorKind::kResource, "{}: cannot link or move {} here: {}", from.string(),
                blob(etag), error.message());
  }
}

void HubCache::prepare() const {
  make_folders(repo_dir_ + "/blobs");
  const std::string tag = cache_dir_ + "/CACHEDIR.TAG";
  if (file_exists(tag)) return;
  try {
    write_file(tag,
               "Signature: 8a477f597d28d172789f06886806bc55\n"
               "# This folder holds downloaded models, which can be downloaded again.\n");
  } catch (const std::exception&) {  // a convenience, and another process may be at it
  }
}

}  // namespace minisgl
