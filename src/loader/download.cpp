#include "loader/download.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <exception>
#include <filesystem>
#include <mutex>
#include <thread>
#include <vector>

#include "utils/digest.h"
#include "utils/error.h"
#include "utils/progress.h"

namespace minisgl {
namespace {

constexpr int64_t kMaxDelayMs = 30'000;

void pause_ms(int ms, const std::function<bool()>& cancelled) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
  while (std::chrono::steady_clock::now() < end) {
    if (cancelled && cancelled()) throw_error(ErrorKind::kCancelled, "the download was cancelled");
    std::this_thread::sleep_for(std::chrono::milliseconds(std::min(ms, 50)));
  }
}

bool may_pass(int status) {
  return status == 408 || status == 429 || (status >= 500 && status != 501 && status != 505);
}

std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The seconds form of Retry-After; dates are left to the usual pause.
int retry_after_ms(const HttpResponse& response) {
  const auto seconds = parse_number(response.header("retry-after").value_or(""));
  return seconds ? static_cast<int>(std::min<uint64_t>(*seconds, 30) * 1000) : 0;
}

// "bytes 100-199/200": where the body starts and how large the whole file is.
struct ContentRange {
  uint64_t first = 0;
  std::optional<uint64_t> total;
};

std::optional<ContentRange> parse_content_range(std::string_view text) {
  if (!text.starts_with("bytes ")) return std::nullopt;
  text.remove_prefix(6);
  const size_t dash = text.find('-'), slash = text.find('/');
  if (dash == text.npos || slash == text.npos || dash > slash) return std::nullopt;
  const auto first = parse_number(text.substr(0, dash));
  if (!first) return std::nullopt;
  return ContentRange{*first, parse_number(text.substr(slash + 1))};
}

bool is_strong_etag(std::string_view etag) {
  return etag.size() >= 2 && etag.front() == '"' && etag.back() == '"';
}

// The growing file, with the checksum of what is in it.
class PartialFile {
 public:
  explicit PartialFile(const DownloadJob& job) : job_(job), digest_(DigestKind::kSha256) {
    fd_ = ::open(job.partial_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd_ < 0) fail("cannot open");
    digest_what_is_there();
  }
  ~PartialFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  uint64_t size() const { return size_; }

  void start_over() {
    if (::ftruncate(fd_, 0) != 0 || ::lseek(fd_, 0, SEEK_SET) != 0) fail("cannot truncate");
    size_ = 0;
    digest_ = Digest(DigestKind::kSha256);
  }

  void append(std::string_view bytes) {
    digest_.update(bytes);
    size_ += bytes.size();
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail("cannot write");
      bytes.remove_prefix(static_cast<size_t>(n));
    }
  }

  std::string finish_hex() { return digest_.finish_hex(); }

  void move_into_place() {
    // A rename may reach the disk before the data does; a torn file must not look whole.
    if (::fdatasync(fd_) != 0) fail("cannot write");
    if (::rename(job_.partial_path.c_str(), job_.path.c_str()) != 0) fail("cannot rename");
  }

  void remove() { ::unlink(job_.partial_path.c_str()); }

 private:
  void digest_what_is_there() {
    std::vector<char> buffer(size_t{1} << 18);
    ssize_t n = 0;
    while ((n = ::read(fd_, buffer.data(), buffer.size())) > 0) {
      digest_.update({buffer.data(), static_cast<size_t>(n)});
      size_ += static_cast<uint64_t>(n);
    }
    if (n < 0) fail("cannot read");
  }

  [[noreturn]] void fail(const char* what) const {
    const int error = errno;
    if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
      throw_error(ErrorKind::kResource,
                  "{}: no room on disk for {} ({} after {}); free some, or point HF_HUB_CACHE "
                  "(MODELSCOPE_CACHE) elsewhere, and run again to resume",
                  job_.what, job_.partial_path, std::strerror(error), format_bytes(size_));
    }
    throw_error(ErrorKind::kResource, "{}: {} {}: {}", job_.what, what, job_.partial_path,
                std::strerror(error));
  }

  const DownloadJob& job_;
  int fd_ = -1;
  uint64_t size_ = 0;
  Digest digest_;
};

// One download from its first request to the checked file.
class Download {
 public:
  Download(HttpClient& client, const DownloadJob& job, const RetryOptions& retry,
           const OnBytes& on_bytes, const OnStatus& on_status)
      : client_(client),
        job_(job),
        retry_(retry),
        on_bytes_(on_bytes),
        on_status_(on_status),
        file_(job),
        etag_(job.etag) {}

  void run() {
    if (job_.size && file_.size() > *job_.size) file_.start_over();
    spliced_ = file_.size() > 0;
    report();
    fetch();
    if (!is_right() && spliced_) {
      // The pieces may be of different versions: once more from the start.
      start_over();
      fetch();
    }
    if (!is_right()) {
      file_.remove();
      throw_error(ErrorKind::kBadFile,
                  "{}: expected {} with SHA-256 {}, received {} with {}; the file was damaged on "
                  "the way or on the server; try again",
                  job_.what, job_.size ? fmt::format("{} bytes", *job_.size) : "a file",
                  job_.sha256.empty() ? "unknown" : job_.sha256,
                  fmt::format("{} bytes", file_.size()), actual_sha256_);
    }
    file_.move_into_place();
  }

 private:
  bool complete() const { return complete_ || (job_.size && file_.size() == *job_.size); }

  void fetch() {
    complete_ = false;
    // Only a file longer than ever before counts, or a server could keep us busy for ever.
    uint64_t longest = file_.size();
    const auto progressed = [&] {
      const bool longer = file_.size() > longest;
      longest = std::max(longest, file_.size());
      return longer;
    };
    if (!complete() || file_.size() == 0) {
      const HttpResponse response = with_retries([&] { return request(); }, job_.what, retry_,
                                                 client_.options().cancelled, progressed);
      if (response.status / 100 != 2) on_status_(response);
    }
    actual_sha256_ = file_.finish_hex();
  }

  void start_over() {
    file_.start_over();
    etag_.clear();
    spliced_ = false;
  }

  bool is_right() const {
    return (!job_.size || file_.size() == *job_.size) &&
           (job_.sha256.empty() || actual_sha256_ == job_.sha256);
  }

  HttpResponse request() {
    std::vector<std::string> headers;
    if (file_.size() > 0) {
      headers.push_back(fmt::format("Range: bytes={}-", file_.size()));
      if (!etag_.empty()) headers.push_back("If-Range: " + etag_);
    }
    const HttpResponse response = client_.stream(
        job_.url, headers, [&](const HttpResponse& head) { begin(head); },
        [&](std::string_view piece) {
          file_.append(piece);
          if (job_.size && file_.size() > *job_.size) wrong_length(file_.size());
          report();
        });
    if (response.status == 416) {  // what is on disk is not a beginning of this file
      start_over();
      throw TransportError{"the server has no such range", true};
    }
    if (response.status / 100 == 2) {
      if (job_.size && file_.size() < *job_.size) {
        throw TransportError{
            fmt::format("the connection ended after {} of {} bytes", file_.size(), *job_.size),
            true};
      }
      complete_ = true;
    }
    return response;
  }

  // A 206 must go on exactly where the file ends; a 200 sends everything, whatever was asked.
  void begin(const HttpResponse& head) {
    if (head.status == 206) {
      const auto range = parse_content_range(head.header("content-range").value_or(""));
      const bool fits = range && range->first == file_.size() &&
                        (!range->total || !job_.size || *range->total == *job_.size);
      if (!fits) {
        start_over();
        throw TransportError{fmt::format("the server answered with another range ({})",
                                         printable(head.header("content-range").value_or("none"))),
                             true};
      }
      spliced_ = spliced_ || file_.size() > 0;
    } else {
      const auto length = parse_number(head.header("content-length").value_or(""));
      if (job_.size && length && *length != *job_.size) wrong_length(*length);
      if (file_.size() > 0) start_over();
    }
    const std::string etag = head.header("etag").value_or("");
    etag_ = is_strong_etag(etag) ? etag : "";
  }

  [[noreturn]] void wrong_length(uint64_t length) {
    file_.remove();
    throw_error(ErrorKind::kBadFile,
                "{}: expected {} bytes as announced, the server sends {}; try again", job_.what,
                *job_.size, length);
  }

  void report() {
    if (on_bytes_) on_bytes_(file_.size());
  }

  HttpClient& client_;
  const DownloadJob& job_;
  const RetryOptions& retry_;
  const OnBytes& on_bytes_;
  const OnStatus& on_status_;
  PartialFile file_;
  std::string etag_;  // of the body that is on disk, where known
  std::string actual_sha256_;
  bool complete_ = false;
  bool spliced_ = false;  // the file came in more than one piece
};

}  // namespace

HttpResponse with_retries(const std::function<HttpResponse()>& request, const std::string& what,
                          const RetryOptions& retry, const std::function<bool()>& cancelled,
                          const std::function<bool()>& progressed) {
  int failures = 0;
  while (true) {
    std::string problem;
    int least_pause_ms = 0;
    try {
      const HttpResponse response = request();
      if (!may_pass(response.status)) return response;
      problem = fmt::format("{} answered {}", url_for_display(response.url), response.status);
      least_pause_ms = retry_after_ms(response);
    } catch (const TransportError& error) {
      problem = error.message;
      if (!error.worth_retrying) throw_error(ErrorKind::kNetwork, "{}: {}", what, problem);
    }
    failures = progressed && progressed() ? 1 : failures + 1;
    if (failures > retry.max_retries) {
      throw_error(ErrorKind::kNetwork,
                  "{}: {} (tried {} times); check the network and proxy settings and run again",
                  what, problem, failures);
    }
    const int64_t doubled = int64_t{retry.delay_ms} << std::min(failures - 1, 10);
    const int ms = std::max(least_pause_ms, static_cast<int>(std::min(doubled, kMaxDelayMs)));
    if (retry.on_retry) {
      retry.on_retry(fmt::format("{}: {}; trying again in {} s", what, problem, (ms + 999) / 1000));
    }
    pause_ms(ms, cancelled);
  }
}

void download_file(HttpClient& client, const DownloadJob& job, const RetryOptions& retry,
                   const OnBytes& on_bytes, const OnStatus& on_status) {
  Download(client, job, retry, on_bytes, on_status).run();
}

void check_disk_space(const std::string& folder, uint64_t bytes, const std::string& what) {
  struct statvfs info {};
  if (::statvfs(folder.c_str(), &info) != 0) return;  // the write itself will tell
  const uint64_t free_bytes = static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
  if (bytes <= free_bytes) return;
  throw_error(ErrorKind::kResource,
              "{}: needs {} more on disk, {} has {}; free some, or point HF_HUB_CACHE "
              "(MODELSCOPE_CACHE) elsewhere",
              what, format_bytes(bytes), folder, format_bytes(free_bytes));
}

void run_in_parallel(size_t count, int workers, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next{0};
  std::atomic<bool> stop{false};
  std::exception_ptr first;
  std::mutex first_mutex;
  const auto loop = [&] {
    for (size_t i = next++; i < count && !stop; i = next++) {
      try {
        work(i);
      } catch (...) {
        stop = true;
        const std::lock_guard lock(first_mutex);
        if (!first) first = std::current_exception();
      }
    }
  };
  {
    const size_t threads = std::min(count, static_cast<size_t>(std::max(workers, 1)));
    std::vector<std::jthread> pool;
    for (size_t i = 1; i < threads; ++i) pool.emplace_back(loop);
    loop();
  }
  if (first) std::rethrow_exception(first);
}

FileLock::FileLock(const std::string& path, const std::function<bool()>& cancelled,
                   const std::function<void()>& on_wait) {
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  bool told = false;
  while (true) {
    fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd_ < 0) {
      throw_error(ErrorKind::kResource, "{}: cannot open the lock file: {}", path,
                  std::strerror(errno));
    }
    while (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
      // Some network file systems have no flock: checked files and renames keep the cache right
      // without it, only the same file may then be downloaded twice.
      if (errno == ENOSYS || errno == ENOTSUP || errno == ENOLCK) return;
      if (errno != EWOULDBLOCK && errno != EINTR) {
        const int error = errno;
        ::close(fd_);
        throw_error(ErrorKind::kResource, "{}: cannot lock: {}", path, std::strerror(error));
      }
      if (!told && on_wait) on_wait();
      told = true;
      try {
        pause_ms(100, cancelled);
      } catch (...) {
        ::close(fd_);
        throw;
      }
    }
    // The last holder may have removed the file: then this lock is on nothing.
    struct stat ours {
    }, named{};
    if (::fstat(fd_, &ours) == 0 && ::stat(path.c_str(), &named) == 0 &&
        ours.st_ino == named.st_ino && ours.st_dev == named.st_dev) {
      return;
    }
    ::close(fd_);
  }
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace minisgl
