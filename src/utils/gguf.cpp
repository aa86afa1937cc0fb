#include "utils/gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <limits>

#include "utils/error.h"
#include "utils/math.h"
#include "utils/quote.h"

namespace minisgl {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF is read in place, little endian");

constexpr uint64_t kMaxKeyBytes = 65535;  // the format's limit
constexpr uint64_t kMaxTensorNameBytes = 255;
constexpr uint64_t kMaxShards = 9999;
constexpr int kMaxArrayDepth = 4;
constexpr uint32_t kDefaultAlignment = 32;
constexpr uint32_t kMinAlignment = 8;  // the format's, and what makes reading floats in place safe

constexpr GgmlTypeInfo kGgmlTypes[] = {
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},
    {3, "Q4_1", 32, 20},      {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},
    {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},      {10, "Q2_K", 256, 84},
    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66},
    {17, "IQ2_XS", 256, 74},  {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},
    {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},  {22, "IQ2_S", 256, 82},
    {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
    {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},
    {29, "IQ1_M", 256, 56},   {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},
    {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},    {40, "NVFP4", 64, 36},
    {41, "Q1_0", 128, 18},
};

// Bytes of a scalar; 0 for strings and arrays.
constexpr uint64_t scalar_bytes(GgufType type) {
  switch (type) {
    case GgufType::kUInt8:
    case GgufType::kInt8:
    case GgufType::kBool:
      return 1;
    case GgufType::kUInt16:
    case GgufType::kInt16:
      return 2;
    case GgufType::kUInt32:
    case GgufType::kInt32:
    case GgufType::kFloat32:
      return 4;
    case GgufType::kUInt64:
    case GgufType::kInt64:
    case GgufType::kFloat64:
      return 8;
    case GgufType::kString:
    case GgufType::kArray:
      return 0;
  }
  return 0;
}

// The fewest bytes that a value of this type takes.
constexpr uint64_t min_bytes(GgufType type) {
  if (type == GgufType::kString) return 8;
  if (type == GgufType::kArray) return 12;
  return scalar_bytes(type);
}

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Reads forward through the header; every read is checked against the end of the file.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, const std::string& path) : bytes_(bytes), path_(path) {}

  uint64_t offset() const { return offset_; }
  uint64_t remaining() const { return bytes_.size() - offset_; }

  std::span<const std::byte> take(uint64_t n, std::string_view what) {
    if (n > remaining()) {
      throw_error(ErrorKind::kBadFile,
                  "{}: {} needs {} bytes from byte {}, the file has {}; it is cut off or damaged, "
                  "download it again",
                  path_, what, n, offset_, bytes_.size());
    }
    const auto part = bytes_.subspan(offset_, n);
    offset_ += n;
    return part;
  }

  template <class T>
  T read(std::string_view what) {
    return load<T>(take(sizeof(T), what).data());
  }

  std::string_view read_string(std::string_view what) {
    const auto size = read<uint64_t>(what);
    const auto text = take(size, what);
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }

  // A number of things of at least `min_size` bytes each, which must fit into the rest of the file.
  uint64_t read_count(uint64_t min_size, std::string_view what) {
    const auto count = read<uint64_t>(what);
    if (count > remaining() / min_size) {
      throw_error(ErrorKind::kBadFile,
                  "{}: says {} {}, more than the {} bytes of the file can hold", path_, count, what,
                  bytes_.size());
    }
    return count;
  }

  GgufType read_type(std::string_view what) {
    const auto type = read<uint32_t>(what);
    if (type > static_cast<uint32_t>(GgufType::kFloat64)) {
      throw_error(ErrorKind::kBadFile, "{}: {} has the unknown value type {}", path_, what, type);
    }
    return static_cast<GgufType>(type);
  }

  GgufValue read_value(GgufType type, std::string_view what, int depth = 0) {
    if (type == GgufType::kString) return {type, read_string(what)};
    if (type == GgufType::kArray) return {type, read_array(what, depth)};
    const auto bytes = take(scalar_bytes(type), what);
    if (type == GgufType::kBool) check_bools(bytes, what);
    return scalar(type, bytes.data());
  }

  // `from`: scalar_bytes(type) bytes.
  static GgufValue scalar(GgufType type, const std::byte* from) {
    switch (type) {
      case GgufType::kUInt8:
        return {type, uint64_t{load<uint8_t>(from)}};
      case GgufType::kInt8:
        return {type, int64_t{load<int8_t>(from)}};
      case GgufType::kUInt16:
        return {type, uint64_t{load<uint16_t>(from)}};
      case GgufType::kInt16:
        return {type, int64_t{load<int16_t>(from)}};
      case GgufType::kUInt32:
        return {type, uint64_t{load<uint32_t>(from)}};
      case GgufType::kInt32:
        return {type, int64_t{load<int32_t>(from)}};
      case GgufType::kFloat32:
        return {type, double{load<float>(from)}};
      case GgufType::kBool:
        return {type, load<uint8_t>(from) != 0};
      case GgufType::kUInt64:
        return {type, load<uint64_t>(from)};
      case GgufType::kInt64:
        return {type, load<int64_t>(from)};
      case GgufType::kFloat64:
        return {type, load<double>(from)};
      case GgufType::kString:
      case GgufType::kArray:
        break;
    }
    MINISGL_CHECK(false, "{} is no scalar", gguf_type_name(type));
    return {};
  }

 private:
  GgufArray read_array(std::string_view what, int depth) {
    if (depth >= kMaxArrayDepth) {
      throw_error(ErrorKind::kBadFile, "{}: {} nests arrays deeper than {} levels", path_, what,
                  kMaxArrayDepth);
    }
    GgufArray array;
    array.element_type = read_type(what);
    array.size = read_count(min_bytes(array.element_type), what);
    if (array.element_type == GgufType::kString) {
      array.strings.reserve(array.size);
      for (uint64_t i = 0; i < array.size; ++i) array.strings.push_back(read_string(what));
    } else if (array.element_type == GgufType::kArray) {
      for (uint64_t i = 0; i < array.size; ++i) {
        array.arrays.push_back(read_value(GgufType::kArray, what, depth + 1));
      }
    } else {
      array.scalars = take(array.size * scalar_bytes(array.element_type), what);
      if (array.element_type == GgufType::kBool) check_bools(array.scalars, what);
    }
    return array;
  }

  void check_bools(std::span<const std::byte> bytes, std::string_view what) const {
    for (const std::byte b : bytes) {
      if (std::to_integer<int>(b) > 1) {
        throw_error(ErrorKind::kBadFile, "{}: {} has a bool with the value {}, expected 0 or 1",
                    path_, what, std::to_integer<int>(b));
      }
    }
  }

  std::span<const std::byte> bytes_;
  const std::string& path_;
  uint64_t offset_ = 0;
};

// Returns the version, 2 or 3.
uint32_t read_magic(Reader& reader, const std::string& path) {
  const auto magic = reader.take(4, "the magic bytes");
  if (std::memcmp(magic.data(), "GGUF", 4) != 0) {
    throw_error(ErrorKind::kBadFile, "{}: is not a GGUF file (it does not begin with \"GGUF\")",
                path);
  }
  const auto version = reader.read<uint32_t>("the version");
  if (version != 0 && (version & 0xffff) == 0) {
    throw_error(ErrorKind::kUnsupported,
                "{}: is a big-endian GGUF file, expected little endian; convert it again", path);
  }
  if (version != 2 && version != 3) {
    throw_error(ErrorKind::kUnsupported, "{}: GGUF version {}, expected 2 or 3; convert it again",
                path, version);
  }
  return version;
}

using Metadata = std::vector<std::pair<std::string, GgufValue>>;

Metadata read_metadata(Reader& reader, uint64_t count, const std::string& path) {
  Metadata metadata;
  for (uint64_t i = 0; i < count; ++i) {
    const std::string_view key = reader.read_string("a metadata key");
    if (key.empty() || key.size() > kMaxKeyBytes) {
      throw_error(ErrorKind::kBadFile, "{}: metadata key {} has {} bytes, expected 1 to {}", path,
                  i, key.size(), kMaxKeyBytes);
    }
    const std::string what = "metadata key " + quote(key);
    const GgufType type = reader.read_type(what);
    metadata.emplace_back(key, reader.read_value(type, what));
  }
  return metadata;
}

const GgufValue* find_in(const Metadata& metadata, std::string_view key) {
  for (const auto& [name, value] : metadata) {
    if (name == key) return &value;
  }
  return nullptr;
}

uint32_t alignment_of(const Metadata& metadata, const std::string& path) {
  const GgufValue* value = find_in(metadata, "general.alignment");
  if (value == nullptr) return kDefaultAlignment;
  if (value->type != GgufType::kUInt32) {
    throw_error(ErrorKind::kBadFile, "{}: general.alignment is of type {}, expected uint32", path,
                gguf_type_name(value->type));
  }
  const auto alignment = std::get<uint64_t>(value->data);
  if (!std::has_single_bit(alignment) || alignment < kMinAlignment) {
    throw_error(ErrorKind::kBadFile, "{}: general.alignment is {}, expected a power of two from {}",
                path, alignment, kMinAlignment);
  }
  return static_cast<uint32_t>(alignment);
}

// A small unsigned integer of a split model's bookkeeping.
std::optional<uint64_t> split_number(const Metadata& metadata, std::string_view key,
                                     const std::string& path) {
  const GgufValue* value = find_in(metadata, key);
  if (value == nullptr) return std::nullopt;
  if (const auto* number = std::get_if<uint64_t>(&value->data)) return *number;
  if (const auto* number = std::get_if<int64_t>(&value->data); number && *number >= 0) {
    return static_cast<uint64_t>(*number);
  }
  throw_error(ErrorKind::kBadFile, "{}: {} is of type {}, expected a whole number >= 0", path, key,
              gguf_type_name(value->type));
}

// Returns the bytes that `tensor` takes; checks its shape against its type.
uint64_t checked_bytes(const GgufTensor& tensor, const std::string& path) {
  const GgmlTypeInfo* type = find_ggml_type(tensor.type);
  if (type == nullptr) {
    throw_error(ErrorKind::kBadFile, "{}: tensor {} has the unknown type {}", path,
                quote(tensor.name), tensor.type);
  }
  if (tensor.dims[0] % type->block_size != 0) {
    throw_error(ErrorKind::kBadFile,
                "{}: tensor {} has rows of {} elements, expected a multiple of {} for {}", path,
                quote(tensor.name), tensor.dims[0], type->block_size, type->name);
  }
  std::optional<uint64_t> elements = 1;
  for (const int64_t dim : tensor.dims) {
    if (elements) elements = checked_mul(*elements, static_cast<uint64_t>(dim));
  }
  const auto block_bytes = static_cast<uint64_t>(type->block_bytes);
  const auto bytes =
      elements && *elements <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())
          ? checked_mul(*elements / static_cast<uint64_t>(type->block_size), block_bytes)
          : std::nullopt;
  if (!bytes) {
    throw_error(ErrorKind::kBadFile, "{}: the size of tensor {} ({} x {} x {} x {}) overflows",
                path, quote(tensor.name), tensor.dims[0], tensor.dims[1], tensor.dims[2],
                tensor.dims[3]);
  }
  return *bytes;
}

// Reads one tensor's entry; file_offset is still relative to the data section, data has no address.
GgufTensor read_tensor_info(Reader& reader, uint32_t alignment, const std::string& path) {
  GgufTensor tensor;
  tensor.name = reader.read_string("a tensor's name");
  if (tensor.name.empty() || tensor.name.size() > kMaxTensorNameBytes) {
    throw_error(ErrorKind::kBadFile, "{}: a tensor's name has {} bytes, expected 1 to {}", path,
                tensor.name.size(), kMaxTensorNameBytes);
  }
  const std::string what = "the entry of tensor " + quote(tensor.name);
  const auto num_dims = reader.read<uint32_t>(what);
  if (num_dims < 1 || num_dims > tensor.dims.size()) {
    throw_error(ErrorKind::kBadFile, "{}: tensor {} has {} dimensions, expected 1 to {}", path,
                quote(tensor.name), num_dims, tensor.dims.size());
  }
  tensor.num_dims = static_cast<int>(num_dims);
  for (uint32_t i = 0; i < num_dims; ++i) {
    const auto dim = reader.read<uint64_t>(what);
    if (dim == 0 || dim > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      throw_error(ErrorKind::kBadFile, "{}: dimension {} of tensor {} is {}, expected at least 1",
                  path, i, quote(tensor.name), dim);
    }
    tensor.dims[i] = static_cast<int64_t>(dim);
  }
  tensor.type = reader.read<uint32_t>(what);
  tensor.file_offset = reader.read<uint64_t>(what);
  if (tensor.file_offset % alignment != 0) {
    throw_error(ErrorKind::kBadFile, "{}: tensor {} begins at offset {}, expected a multiple of {}",
                path, quote(tensor.name), tensor.file_offset, alignment);
  }
  return tensor;
}

// Fills in `data`, which must lie inside the file.
void locate(GgufTensor& tensor, uint64_t data_begin, std::span<const std::byte> bytes,
            const std::string& path) {
  const uint64_t size = checked_bytes(tensor, path);
  const auto begin = checked_add(data_begin, tensor.file_offset);
  const auto end = begin ? checked_add(*begin, size) : std::nullopt;
  if (!end) {
    throw_error(ErrorKind::kBadFile, "{}: the offset {} of tensor {} overflows", path,
                tensor.file_offset, quote(tensor.name));
  }
  if (*end > bytes.size()) {
    throw_error(ErrorKind::kBadFile,
                "{}: tensor {} needs bytes {}..{}, the file has {}; it is cut off or damaged, "
                "download it again",
                path, quote(tensor.name), *begin, *end, bytes.size());
  }
  tensor.file_offset = *begin;
  tensor.data = bytes.subspan(*begin, size);
}

void check_no_overlap(std::span<const GgufTensor> tensors, const std::string& path) {
  std::vector<const GgufTensor*> sorted;
  sorted.reserve(tensors.size());
  for (const GgufTensor& tensor : tensors) sorted.push_back(&tensor);
  std::sort(sorted.begin(), sorted.end(), [](const GgufTensor* a, const GgufTensor* b) {
    return a->file_offset < b->file_offset;
  });
  for (size_t i = 1; i < sorted.size(); ++i) {
    const GgufTensor& before = *sorted[i - 1];
    if (before.file_offset + before.data.size() > sorted[i]->file_offset) {
      throw_error(ErrorKind::kBadFile, "{}: tensor {} overlaps tensor {} at byte {}", path,
                  quote(before.name), quote(sorted[i]->name), sorted[i]->file_offset);
    }
  }
}

// "x-00001-of-00003.gguf" -> "x-"; empty when `path` is not the first shard of `count`.
std::optional<std::string> shard_prefix(const std::string& path, uint64_t count) {
  const std::string suffix = fmt::format("00001-of-{:05}.gguf", count);
  if (!path.ends_with(suffix)) return std::nullopt;
  return path.substr(0, path.size() - suffix.size());
}

}  // namespace

std::string_view gguf_type_name(GgufType type) {
  constexpr std::string_view kNames[] = {"uint8",  "int8",    "uint16", "int16",  "uint32",
                                         "int32",  "float32", "bool",   "string", "array",
                                         "uint64", "int64",   "float64"};
  return kNames[static_cast<size_t>(type)];
}

const GgmlTypeInfo* find_ggml_type(uint32_t id) {
  for (const GgmlTypeInfo& type : kGgmlTypes) {
    if (type.id == id) return &type;
  }
  return nullptr;
}

GgufValue GgufArray::at(uint64_t index) const {
  MINISGL_CHECK(index < size);
  if (element_type == GgufType::kString) return {element_type, strings[index]};
  if (element_type == GgufType::kArray) return arrays[index];
  return Reader::scalar(element_type, scalars.data() + index * scalar_bytes(element_type));
}

GgufFile GgufFile::open(const std::string& path) {
  GgufFile result;
  MappedFile file(path);
  const auto bytes = file.bytes();
  result.add_shard({path, std::move(file), bytes});
  result.add_other_shards();
  return result;
}

GgufFile GgufFile::parse(std::span<const std::byte> bytes, const std::string& name) {
  GgufFile result;
  result.add_shard({name, std::nullopt, bytes});
  if (split_number(result.metadata_, "split.count", name).value_or(1) > 1) {
    throw_error(ErrorKind::kUnsupported, "{}: is one shard of several; open it from its folder",
                name);
  }
  return result;
}

void GgufFile::add_shard(Shard shard) {
  const std::string& path = shard.path;
  Reader reader(shard.bytes, path);
  const uint32_t version = read_magic(reader, path);
  constexpr uint64_t kMinTensorInfo = 8 + 1 + 4 + 8 + 4 + 8;
  constexpr uint64_t kMinKeyValue = 8 + 1 + 4 + 1;
  const uint64_t num_tensors = reader.read_count(kMinTensorInfo, "tensors");
  const uint64_t num_keys = reader.read_count(kMinKeyValue, "metadata keys");
  Metadata metadata = read_metadata(reader, num_keys, path);
  std::unordered_map<std::string, size_t> index;
  for (size_t i = 0; i < metadata.size(); ++i) {
    if (!index.emplace(metadata[i].first, i).second) {
      throw_error(ErrorKind::kBadFile, "{}: the metadata key {} stands there twice", path,
                  quote(metadata[i].first));
    }
  }
  const uint32_t alignment = alignment_of(metadata, path);
  const size_t first = tensors_.size();
  for (uint64_t i = 0; i < num_tensors; ++i) {
    GgufTensor tensor = read_tensor_info(reader, alignment, path);
    tensor.shard = shards_.size();
    if (!tensor_index_.emplace(tensor.name, tensors_.size()).second) {
      throw_error(ErrorKind::kBadFile, "{}: the tensor {} stands there twice", path,
                  quote(tensor.name));
    }
    tensors_.push_back(std::move(tensor));
  }
  // A header ends far below 2^63, so this cannot overflow.
  const uint64_t data_begin = (reader.offset() + alignment - 1) / alignment * alignment;
  const auto added = std::span(tensors_).subspan(first);
  for (GgufTensor& tensor : added) locate(tensor, data_begin, shard.bytes, path);
  check_no_overlap(added, path);

  if (shards_.empty()) {
    version_ = version;
    metadata_ = std::move(metadata);
    metadata_index_ = std::move(index);
  } else {
    const auto number = split_number(metadata, "split.no", path);
    if (number != shards_.size()) {
      throw_error(ErrorKind::kBadFile, "{}: split.no is {}, expected {}", path,
                  number ? std::to_string(*number) : "missing", shards_.size());
    }
    const auto count = split_number(metadata, "split.count", path);
    if (count != split_number(metadata_, "split.count", path)) {
      throw_error(ErrorKind::kBadFile, "{}: split.count is {}, another than in {}", path,
                  count ? std::to_string(*count) : "missing", shards_.front().path);
    }
  }
  shards_.push_back(std::move(shard));
}

void GgufFile::add_other_shards() {
  const std::string first = path();
  const uint64_t count = split_number(metadata_, "split.count", first).value_or(1);
  if (count <= 1) return;
  if (count > kMaxShards) {
    throw_error(ErrorKind::kBadFile, "{}: split.count is {}, expected at most {}", first, count,
                kMaxShards);
  }
  const auto prefix = shard_prefix(first, count);
  if (!prefix || split_number(metadata_, "split.no", first).value_or(0) != 0) {
    throw_error(ErrorKind::kInvalidArgument,
                "{}: is one of {} shards, open the first one, whose name ends in "
                "00001-of-{:05}.gguf",
                first, count, count);
  }
  for (uint64_t i = 2; i <= count; ++i) {
    const std::string path = fmt::format("{}{:05}-of-{:05}.gguf", *prefix, i, count);
    if (!std::filesystem::exists(path)) {
      throw_error(ErrorKind::kNotFound, "{}: shard {} of {} of {} is missing; download it too",
                  path, i, count, first);
    }
    MappedFile file(path);
    const auto bytes = file.bytes();
    add_shard({path, std::move(file), bytes});
  }
  const auto expected = split_number(metadata_, "split.tensors.count", first);
  if (expected && *expected != tensors_.size()) {
    throw_error(ErrorKind::kBadFile,
                "{}: its {} shards hold {} tensors, split.tensors.count says {}", first, count,
                tensors_.size(), *expected);
  }
}

void GgufFile::release(size_t shard, std::span<const std::byte> bytes) const {
  const auto whole = shards_[shard].bytes;
  const bool inside =
      bytes.data() >= whole.data() && bytes.data() + bytes.size() <= whole.data() + whole.size();
  if (shards_[shard].file && inside) shards_[shard].file->release(bytes);
}

const GgufValue* GgufFile::find(std::string_view key) const {
  const auto found = metadata_index_.find(std::string(key));
  return found == metadata_index_.end() ? nullptr : &metadata_[found->second].second;
}

const GgufTensor* GgufFile::find_tensor(std::string_view name) const {
  const auto found = tensor_index_.find(std::string(name));
  return found == tensor_index_.end() ? nullptr : &tensors_[found->second];
}

void GgufFile::throw_wrong_type(std::string_view key, std::string_view expected) const {
  const GgufValue& value = *find(key);
  std::string found(gguf_type_name(value.type));
  if (const auto* array = std::get_if<GgufArray>(&value.data)) {
    found += fmt::format(" of {}", gguf_type_name(array->element_type));
  }
  throw_error(ErrorKind::kBadFile, "{}: metadata key {} is of type {}, expected {}", path(),
              quote(key), found, expected);
}

namespace {

std::optional<int64_t> as_integer(const GgufValue& value) {
  if (const auto* number = std::get_if<int64_t>(&value.data)) return *number;
  const auto* number = std::get_if<uint64_t>(&value.data);
  if (number == nullptr || *number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return std::nullopt;
  }
  return static_cast<int64_t>(*number);
}

std::optional<double> as_number(const GgufValue& value) {
  if (const auto* number = std::get_if<double>(&value.data)) return *number;
  if (const auto* number = std::get_if<uint64_t>(&value.data)) return static_cast<double>(*number);
  if (const auto* number = std::get_if<int64_t>(&value.data)) return static_cast<double>(*number);
  return std::nullopt;
}

}  // namespace

std::optional<std::string_view> GgufFile::string(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* text = std::get_if<std::string_view>(&value->data)) return *text;
  throw_wrong_type(key, "string");
}

std::optional<int64_t> GgufFile::integer(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto number = as_integer(*value)) return number;
  throw_wrong_type(key, "an integer below 2^63");
}

std::optional<double> GgufFile::number(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto number = as_number(*value)) return number;
  throw_wrong_type(key, "a number");
}

std::optional<bool> GgufFile::boolean(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* flag = std::get_if<bool>(&value->data)) return *flag;
  throw_wrong_type(key, "bool");
}

const GgufArray* GgufFile::find_array(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return nullptr;
  if (const auto* array = std::get_if<GgufArray>(&value->data)) return array;
  throw_wrong_type(key, "an array");
}

std::optional<std::vector<std::string_view>> GgufFile::strings(std::string_view key) const {
  const GgufArray* array = find_array(key);
  if (array == nullptr) return std::nullopt;
  if (array->element_type != GgufType::kString && array->size > 0) {
    throw_wrong_type(key, "an array of string");
  }
  return array->strings;
}

std::optional<std::vector<int64_t>> GgufFile::integers(std::string_view key) const {
  const GgufArray* array = find_array(key);
  if (array == nullptr) return std::nullopt;
  std::vector<int64_t> numbers;
  numbers.reserve(array->size);
  for (uint64_t i = 0; i < array->size; ++i) {
    const auto number = as_integer(array->at(i));
    if (!number) throw_wrong_type(key, "an array of integers below 2^63");
    numbers.push_back(*number);
  }
  return numbers;
}

std::optional<std::vector<double>> GgufFile::numbers(std::string_view key) const {
  const GgufArray* array = find_array(key);
  if (array == nullptr) return std::nullopt;
  std::vector<double> numbers;
  numbers.reserve(array->size);
  for (uint64_t i = 0; i < array->size; ++i) {
    const auto number = as_number(array->at(i));
    if (!number) throw_wrong_type(key, "an array of numbers");
    numbers.push_back(*number);
  }
  return numbers;
}

std::optional<std::vector<bool>> GgufFile::booleans(std::string_view key) const {
  const GgufArray* array = find_array(key);
  if (array == nullptr) return std::nullopt;
  if (array->element_type != GgufType::kBool && array->size > 0) {
    throw_wrong_type(key, "an array of bool");
  }
  std::vector<bool> flags(array->size);
  for (uint64_t i = 0; i < array->size; ++i) flags[i] = std::get<bool>(array->at(i).data);
  return flags;
}

}  // namespace minisgl
