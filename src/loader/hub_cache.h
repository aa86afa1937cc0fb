// The Hugging Face cache on disk, as the Python client huggingface_hub lays it out:
//   models--ORG--REPO/blobs/ETAG                 the bytes, ETAG.incomplete while they grow
//                    /refs/REVISION              the commit of a branch or tag, no newline
//                    /snapshots/COMMIT/FILE      relative links to the blobs
//   .locks/models--ORG--REPO/ETAG.lock           flock: one process fetches a blob
#pragma once

#include <optional>
#include <string>

namespace minisgl {

class HubCache {
 public:
  // Nothing is written before it is needed. Thread-safe: it holds paths only.
  HubCache(std::string cache_dir, const std::string& org, const std::string& repo);

  std::string snapshot(const std::string& commit) const;
  std::string pointer(const std::string& commit, const std::string& file) const;
  std::string blob(const std::string& etag) const;
  std::string incomplete(const std::string& etag) const { return blob(etag) + ".incomplete"; }
  std::string lock(const std::string& etag) const;

  // The commit that `revision` was last seen at; a commit is itself. Empty when unknown.
  std::optional<std::string> commit_of(const std::string& revision) const;
  // Errors: kResource.
  void remember(const std::string& revision, const std::string& commit) const;
  // Makes pointer(commit, file) lead to blob(etag); the caller holds the lock of `etag`. Where
  // there are no symbolic links the blob itself moves there. Errors: kResource.
  void link(const std::string& commit, const std::string& file, const std::string& etag) const;
  // The folders for blobs and locks, and the tag that tells backup programs of a cache.
  void prepare() const;

 private:
  std::string cache_dir_, folder_name_, repo_dir_;
};

}  // namespace minisgl
