// A file mapped read-only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace minisgl {

// Move-only; the mapping ends with the object. The file may be deleted meanwhile; truncating it
// while mapped is outside what a reader can guard against.
class MappedFile {
 public:
  // Errors: kNotFound, kResource, kInvalidArgument (a folder).
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  // Tells the kernel that `range` (inside bytes()) was read and need not stay resident.
  void release(std::span<const std::byte> range) const;

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace minisgl
