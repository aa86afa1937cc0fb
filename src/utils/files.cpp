#include "utils/files.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "utils/error.h"

namespace minisgl {
namespace {

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using FilePtr = std::unique_ptr<std::FILE, FileCloser>;

FilePtr open_or_throw(const std::string& path, const char* mode) {
  FilePtr file(std::fopen(path.c_str(), mode));
  if (!file) {
    throw_error(errno == ENOENT ? ErrorKind::kNotFound : ErrorKind::kResource,
                "{}: cannot open: {}", path, std::strerror(errno));
  }
  return file;
}

}  // namespace

std::string read_file(const std::string& path, size_t max_bytes) {
  if (std::filesystem::is_directory(path)) {
    throw_error(ErrorKind::kInvalidArgument, "{}: is a folder, expected a file", path);
  }
  const FilePtr file = open_or_throw(path, "rb");
  std::string content;
  char buffer[1 << 16];
  size_t n = 0;
  while ((n = std::fread(buffer, 1, sizeof buffer, file.get())) > 0) {
    content.append(buffer, n);
    if (content.size() > max_bytes) {
      throw_error(ErrorKind::kResource, "{}: larger than the {} bytes expected of such a file",
                  path, max_bytes);
    }
  }
  if (std::ferror(file.get())) {
    throw_error(ErrorKind::kResource, "{}: read failed: {}", path, std::strerror(errno));
  }
  return content;
}

void write_file(const std::string& path, std::string_view content) {
  const std::string temporary = fmt::format("{}.tmp{}", path, ::getpid());
  {
    const FilePtr file = open_or_throw(temporary, "wb");
    if (std::fwrite(content.data(), 1, content.size(), file.get()) != content.size() ||
        std::fflush(file.get()) != 0) {
      throw_error(ErrorKind::kResource, "{}: write failed: {}", temporary, std::strerror(errno));
    }
  }
  std::filesystem::rename(temporary, path);
}

bool file_exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

}  // namespace minisgl
