// The GGUF container: metadata and tensors of one model, in one file or in shards.
//
// Layout (little endian): "GGUF", version, number of tensors, number of keys; the keys with typed
// values; a name, shape, type and offset for each tensor; the tensors' bytes, aligned. Nothing here
// knows what the keys or tensors mean: the loader and the tokenizer do.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "utils/mmap.h"

namespace minisgl {

// The numbers are the file's.
enum class GgufType : uint32_t {
  kUInt8 = 0,
  kInt8 = 1,
  kUInt16 = 2,
  kInt16 = 3,
  kUInt32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUInt64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};
std::string_view gguf_type_name(GgufType type);  // "uint8", …

struct GgufValue;

// An array of one element type. Scalars stay as they lie in the file; strings are views into it.
struct GgufArray {
  GgufType element_type = GgufType::kUInt8;
  uint64_t size = 0;
  std::span<const std::byte> scalars;     // size elements, unless strings or arrays
  std::vector<std::string_view> strings;  // of kString
  std::vector<GgufValue> arrays;          // of kArray
  GgufValue at(uint64_t index) const;     // index < size
};

// A metadata value; `data` holds the alternative that `type` says, integers widened to 64 bits.
struct GgufValue {
  GgufType type = GgufType::kUInt8;
  std::variant<uint64_t, int64_t, double, bool, std::string_view, GgufArray> data;
};

// How a ggml tensor type lays out its elements.
struct GgmlTypeInfo {
  uint32_t id;            // the number in the file
  std::string_view name;  // "Q4_K"
  int64_t block_size;     // consecutive elements of a row that are stored together
  int64_t block_bytes;
};
const GgmlTypeInfo* find_ggml_type(uint32_t id);  // null: unknown

struct GgufTensor {
  std::string name;
  uint32_t type = 0;                        // find_ggml_type(type) is never null
  int num_dims = 0;                         // 1 … 4
  std::array<int64_t, 4> dims{1, 1, 1, 1};  // as in the file: dims[0] is the innermost; all > 0
  size_t shard = 0;                         // index of the file
  uint64_t file_offset = 0;                 // of its first byte in that file
  std::span<const std::byte> data;          // inside the mapping
  int64_t num_elements() const { return dims[0] * dims[1] * dims[2] * dims[3]; }
};

// An open GGUF model. Move-only; immutable after opening, so any thread may read it. Views and
// spans are good as long as the object (moving it keeps them).
// Everything is checked on opening: after it every tensor lies inside its file, apart from all
// others, and keys and names are unique.
class GgufFile {
 public:
  // Opens `path`; of a split model the first shard, which finds the others beside it by name.
  // Errors: kNotFound (this or a shard), kBadFile, kUnsupported (version 1, big endian).
  static GgufFile open(const std::string& path);
  // The same for one unsplit file in memory, which must outlive the result. `name` is for messages.
  static GgufFile parse(std::span<const std::byte> bytes, const std::string& name);

  const std::string& path() const { return shards_.front().path; }
  uint32_t version() const { return version_; }
  size_t num_shards() const { return shards_.size(); }
  const std::string& shard_path(size_t shard) const { return shards_[shard].path; }
  // Tells the kernel that these bytes of a tensor were read and need not stay resident.
  // Bytes outside the shard are left alone.
  void release(size_t shard, std::span<const std::byte> bytes) const;

  // Metadata of the first shard, in the file's order.
  const std::vector<std::pair<std::string, GgufValue>>& metadata() const { return metadata_; }
  const GgufValue* find(std::string_view key) const;  // null: absent

  // Empty when the key is absent; kBadFile when its value has another type or does not fit.
  std::optional<std::string_view> string(std::string_view key) const;
  std::optional<int64_t> integer(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;  // integers too
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::vector<std::string_view>> strings(std::string_view key) const;
  std::optional<std::vector<int64_t>> integers(std::string_view key) const;
  std::optional<std::vector<double>> numbers(std::string_view key) const;
  std::optional<std::vector<bool>> booleans(std::string_view key) const;

  // Of all shards, in the files' order.
  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  const GgufTensor* find_tensor(std::string_view name) const;  // null: absent

 private:
  struct Shard {
    std::string path;
    std::optional<MappedFile> file;
    std::span<const std::byte> bytes;
  };
  GgufFile() = default;
  void add_shard(Shard shard);
  void add_other_shards();
  const GgufArray* find_array(std::string_view key) const;
  [[noreturn]] void throw_wrong_type(std::string_view key, std::string_view expected) const;

  uint32_t version_ = 0;
  std::vector<Shard> shards_;
  std::vector<std::pair<std::string, GgufValue>> metadata_;
  std::unordered_map<std::string, size_t> metadata_index_;
  std::vector<GgufTensor> tensors_;
  std::unordered_map<std::string, size_t> tensor_index_;
};

}  // namespace minisgl
