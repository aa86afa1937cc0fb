// One file from a server to the disk: resumed, retried, checked, never half there.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "loader/http_client.h"

namespace minisgl {

struct RetryOptions {
  int max_retries = 5;  // in a row without a new byte
  int delay_ms = 1000;  // before the first; doubles up to 30 s. Retry-After of a server counts too
  std::function<void(const std::string& line)> on_retry = {};  // may be empty; before each pause
};

struct DownloadJob {
  std::string url;
  std::string what;          // begins the messages: "ORG/REPO@main: model.safetensors"
  std::string path;          // appears whole, by renaming
  std::string partial_path;  // grows meanwhile, and stays there after an error to be resumed
  std::optional<uint64_t> size;
  std::string sha256;  // lower-case hex; "" where the server tells none
  std::string etag;    // strong, in quotes, of exactly this URL, for If-Range; or ""
};

// Bytes of `job` on disk so far; falls when the file starts over.
using OnBytes = std::function<void(uint64_t done)>;
// An answer that is not 2xx becomes an Error of the hub's own wording.
using OnStatus = std::function<void(const HttpResponse&)>;

// Runs `request`, again after a pause while it fails in a way that may pass: TransportError, or
// status 408, 429 and 5xx. `progressed` (may be empty) tells whether bytes came since it was asked
// last, which resets the count. Errors: kNetwork when retries are used up, kCancelled.
HttpResponse with_retries(const std::function<HttpResponse()>& request, const std::string& what,
                          const RetryOptions& retry, const std::function<bool()>& cancelled,
                          const std::function<bool()>& progressed = {});

// The caller holds the lock of `job.path`.
// Errors: kNetwork, kBadFile (size or checksum is wrong: the partial file is removed), kResource
// (disk full, no permission), kCancelled, and what `on_status` throws.
void download_file(HttpClient& client, const DownloadJob& job, const RetryOptions& retry,
                   const OnBytes& on_bytes, const OnStatus& on_status);

// Errors: kResource when the file system of `folder` has less than `bytes` free.
void check_disk_space(const std::string& folder, uint64_t bytes, const std::string& what);

// Calls work(0) … work(count - 1) on up to `workers` threads. After the first exception no further
// call starts, and it is thrown here.
void run_in_parallel(size_t count, int workers, const std::function<void(size_t)>& work);

// An exclusive flock on a file that is made for it, shared with other programs; move-only.
class FileLock {
 public:
  // Waits for whoever holds it; `on_wait` (may be empty) is called once if that takes time.
  // Errors: kResource, kCancelled.
  FileLock(const std::string& path, const std::function<bool()>& cancelled,
           const std::function<void()>& on_wait);
  ~FileLock();
  FileLock(FileLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  FileLock& operator=(FileLock&&) = delete;

 private:
  int fd_ = -1;
};

}  // namespace minisgl
