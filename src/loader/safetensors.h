// The safetensors container: a JSON header that says where each tensor lies, then their bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tensor/dtype.h"
#include "utils/mmap.h"

namespace minisgl {

struct SafetensorsTensor {
  std::string name;
  std::string stored_dtype;    // as the file says: "BF16"
  std::optional<DType> dtype;  // empty: a type of the format that no weight of ours has (U16, …)
  std::vector<int64_t> shape;  // outermost first; zeros are possible
  std::span<const std::byte> data;
};

// An open file. Move-only; immutable after opening, so any thread may read it. Views are good as
// long as the object (moving it keeps them).
// Checked on opening: the tensors tile the data section without gap or overlap, every size fits its
// shape and type, names are unique.
class SafetensorsFile {
 public:
  // Errors: kNotFound, kBadFile.
  static SafetensorsFile open(const std::string& path);
  // The same from memory, which must outlive the result. `name` is for messages.
  static SafetensorsFile parse(std::span<const std::byte> bytes, const std::string& name);

  const std::string& path() const { return path_; }
  // In the order of their bytes.
  const std::vector<SafetensorsTensor>& tensors() const { return tensors_; }
  const SafetensorsTensor* find(std::string_view name) const;  // null: absent
  // The header's "__metadata__".
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  // Tells the kernel that these bytes of a tensor were read and need not stay resident.
  // Bytes outside the file are left alone.
  void release(std::span<const std::byte> bytes) const;

 private:
  SafetensorsFile() = default;
  void read(std::span<const std::byte> bytes);

  std::string path_;
  std::optional<MappedFile> file_;
  std::span<const std::byte> bytes_;
  std::vector<SafetensorsTensor> tensors_;
  std::unordered_map<std::string, size_t> index_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace minisgl
