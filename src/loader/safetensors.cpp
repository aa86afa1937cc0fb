#include "loader/safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "utils/error.h"
#include "utils/json.h"
#include "utils/math.h"
#include "utils/quote.h"

namespace minisgl {
namespace {

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the format's limit
constexpr size_t kMaxDims = 8;

struct StoredType {
  std::string_view name;
  uint64_t bytes;
  std::optional<DType> dtype;
};
constexpr StoredType kTypes[] = {
    {"F32", 4, DType::kFloat32},        {"BF16", 2, DType::kBFloat16},
    {"F16", 2, DType::kFloat16},        {"F8_E4M3", 1, DType::kFloat8E4M3},
    {"F8_E5M2", 1, DType::kFloat8E5M2}, {"I8", 1, DType::kInt8},
    {"U8", 1, DType::kUInt8},           {"I32", 4, DType::kInt32},
    {"I64", 8, DType::kInt64},          {"BOOL", 1, DType::kBool},
    {"I16", 2, std::nullopt},           {"U16", 2, std::nullopt},
    {"U32", 4, std::nullopt},           {"U64", 8, std::nullopt},
    {"F64", 8, std::nullopt},
};

const StoredType* find_type(std::string_view name) {
  for (const StoredType& type : kTypes) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

// One entry of the header, with where it says that its bytes lie in the data section.
struct Entry {
  SafetensorsTensor tensor;
  uint64_t begin = 0;
  uint64_t end = 0;
};

// What a number of the header must be: whole, >= 0, below 2^63.
uint64_t whole_number(const SortedJson& value, std::string_view what, const std::string& name,
                      const std::string& path) {
  if (!value.is_number_unsigned() ||
      value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    throw_error(ErrorKind::kBadFile, "{}: {} of tensor {} is {}, expected a whole number >= 0",
                path, what, quote(name), value.dump(-1, ' ', true).substr(0, 40));
  }
  return value.get<uint64_t>();
}

const SortedJson& field(const SortedJson& entry, const char* key, const std::string& name,
                        const std::string& path) {
  const auto found = entry.find(key);
  if (found == entry.end()) {
    throw_error(ErrorKind::kBadFile, "{}: the entry of tensor {} has no '{}'", path, quote(name),
                key);
  }
  return *found;
}

// Bytes that the shape takes.
uint64_t checked_bytes(const SafetensorsTensor& tensor, uint64_t element_bytes,
                       const std::string& path) {
  std::optional<uint64_t> bytes = element_bytes;
  for (const int64_t dim : tensor.shape) {
    if (bytes) bytes = checked_mul(*bytes, static_cast<uint64_t>(dim));
  }
  if (!bytes || *bytes > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    throw_error(ErrorKind::kBadFile, "{}: the size of tensor {} overflows", path,
                quote(tensor.name));
  }
  return *bytes;
}

Entry read_entry(const std::string& name, const SortedJson& json, const std::string& path) {
  if (name.empty()) throw_error(ErrorKind::kBadFile, "{}: a tensor has an empty name", path);
  if (!json.is_object()) {
    throw_error(ErrorKind::kBadFile, "{}: the entry of tensor {} is no JSON object", path,
                quote(name));
  }
  Entry entry;
  entry.tensor.name = name;
  const SortedJson& dtype = field(json, "dtype", name, path);
  const StoredType* type = dtype.is_string() ? find_type(dtype.get<std::string>()) : nullptr;
  if (type == nullptr) {
    throw_error(ErrorKind::kBadFile, "{}: tensor {} has the unknown dtype {}", path, quote(name),
                dtype.dump(-1, ' ', true).substr(0, 40));
  }
  entry.tensor.stored_dtype = type->name;
  entry.tensor.dtype = type->dtype;

  const SortedJson& shape = field(json, "shape", name, path);
  if (!shape.is_array() || shape.size() > kMaxDims) {
    throw_error(ErrorKind::kBadFile, "{}: the shape of tensor {} is no list of at most {} numbers",
                path, quote(name), kMaxDims);
  }
  for (const SortedJson& dim : shape) {
    entry.tensor.shape.push_back(
        static_cast<int64_t>(whole_number(dim, "a dimension", name, path)));
  }
  const SortedJson& offsets = field(json, "data_offsets", name, path);
  if (!offsets.is_array() || offsets.size() != 2) {
    throw_error(ErrorKind::kBadFile, "{}: data_offsets of tensor {} are no two numbers", path,
                quote(name));
  }
  entry.begin = whole_number(offsets[0], "a data offset", name, path);
  entry.end = whole_number(offsets[1], "a data offset", name, path);
  const uint64_t bytes = checked_bytes(entry.tensor, type->bytes, path);
  if (entry.begin > entry.end || entry.end - entry.begin != bytes) {
    throw_error(ErrorKind::kBadFile,
                "{}: tensor {} lies at bytes {}..{} of the data, expected {} bytes for its shape",
                path, quote(name), entry.begin, entry.end, bytes);
  }
  return entry;
}

std::map<std::string, std::string> read_metadata(const SortedJson& json, const std::string& path) {
  std::map<std::string, std::string> metadata;
  if (!json.is_object()) {
    throw_error(ErrorKind::kBadFile, "{}: __metadata__ is no JSON object", path);
  }
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) {
      throw_error(ErrorKind::kBadFile, "{}: __metadata__ {} is no string", path, quote(key));
    }
    metadata.emplace(key, value.get<std::string>());
  }
  return metadata;
}

// Entries sorted by their bytes must follow each other from 0 to the data section's end.
void check_tiling(const std::vector<Entry>& entries, uint64_t header_end, uint64_t file_size,
                  const std::string& path) {
  uint64_t expected = 0;
  for (const Entry& entry : entries) {
    // Cannot overflow: both are below 2^63.
    if (header_end + entry.end > file_size) {
      throw_error(ErrorKind::kBadFile,
                  "{}: tensor {} needs bytes {}..{}, the file has {}; it is cut off or damaged, "
                  "download it again",
                  path, quote(entry.tensor.name), header_end + entry.begin, header_end + entry.end,
                  file_size);
    }
    if (entry.begin != expected) {
      throw_error(ErrorKind::kBadFile, "{}: tensor {} begins at byte {} of the data, {} {}", path,
                  quote(entry.tensor.name), entry.begin,
                  entry.begin < expected ? "inside the tensor before it, which ends at"
                                         : "after a gap from",
                  expected);
    }
    expected = entry.end;
  }
  if (header_end + expected != file_size) {
    throw_error(ErrorKind::kBadFile, "{}: the tensors end at byte {}, the file has {}", path,
                header_end + expected, file_size);
  }
}

}  // namespace

SafetensorsFile SafetensorsFile::open(const std::string& path) {
  SafetensorsFile result;
  result.path_ = path;
  result.file_.emplace(path);
  result.read(result.file_->bytes());
  return result;
}

SafetensorsFile SafetensorsFile::parse(std::span<const std::byte> bytes, const std::string& name) {
  SafetensorsFile result;
  result.path_ = name;
  result.read(bytes);
  return result;
}

void SafetensorsFile::read(std::span<const std::byte> bytes) {
  bytes_ = bytes;
  uint64_t header_bytes = 0;
  if (bytes.size() < sizeof header_bytes) {
    throw_error(ErrorKind::kBadFile, "{}: has {} bytes, too few for a safetensors file", path_,
                bytes.size());
  }
  std::memcpy(&header_bytes, bytes.data(), sizeof header_bytes);
  if (header_bytes > kMaxHeaderBytes) {
    throw_error(ErrorKind::kBadFile,
                "{}: says its header has {} bytes, expected at most {}; it is no safetensors file",
                path_, header_bytes, kMaxHeaderBytes);
  }
  if (header_bytes > bytes.size() - sizeof header_bytes) {
    throw_error(ErrorKind::kBadFile,
                "{}: the header needs bytes 8..{}, the file has {}; it is cut off, download it "
                "again",
                path_, header_bytes + 8, bytes.size());
  }
  const uint64_t header_end = sizeof header_bytes + header_bytes;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + sizeof header_bytes,
                              header_bytes);
  const SortedJson header = parse_json_unique(text, path_ + " (header)");
  if (!header.is_object()) {
    throw_error(ErrorKind::kBadFile, "{}: the header is no JSON object", path_);
  }
  std::vector<Entry> entries;
  for (const auto& [name, json] : header.items()) {
    if (name == "__metadata__") {
      metadata_ = read_metadata(json, path_);
    } else {
      entries.push_back(read_entry(name, json, path_));
    }
  }
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  check_tiling(entries, header_end, bytes.size(), path_);
  for (Entry& entry : entries) {
    entry.tensor.data = bytes.subspan(header_end + entry.begin, entry.end - entry.begin);
    index_.emplace(entry.tensor.name, tensors_.size());
    tensors_.push_back(std::move(entry.tensor));
  }
}

const SafetensorsTensor* SafetensorsFile::find(std::string_view name) const {
  const auto found = index_.find(std::string(name));
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

void SafetensorsFile::release(std::span<const std::byte> bytes) const {
  const bool inside =
      bytes.data() >= bytes_.data() && bytes.data() + bytes.size() <= bytes_.data() + bytes_.size();
  if (file_ && inside) file_->release(bytes);
}

}  // namespace minisgl
