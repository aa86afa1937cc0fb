#include "loader/safetensors_checkpoint.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "utils/error.h"
#include "utils/files.h"
#include "utils/json.h"
#include "utils/quote.h"

namespace minisgl {
namespace {

// file name -> the tensors that the index expects in it
std::map<std::string, std::vector<std::string>> read_index(const std::string& path) {
  const SortedJson json = parse_json_unique(read_file(path), path);
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  if (map == json.end() || !map->is_object() || map->empty()) {
    throw_error(ErrorKind::kBadFile, "{}: has no \"weight_map\" from tensors to files", path);
  }
  std::map<std::string, std::vector<std::string>> files;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string()) {
      throw_error(ErrorKind::kBadFile, "{}: the file of tensor {} is no string", path,
                  quote(tensor));
    }
    const auto name = file.get<std::string>();
    if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos ||
        name.find('\0') != std::string::npos) {
      throw_error(ErrorKind::kBadFile,
                  "{}: tensor {} is said to be in {}, expected a file beside "
                  "the index",
                  path, quote(tensor), quote(name));
    }
    files[name].push_back(tensor);
  }
  return files;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace

std::unique_ptr<SafetensorsCheckpoint> SafetensorsCheckpoint::open(const std::string& path,
                                                                   FusedRows fused) {
  std::unique_ptr<SafetensorsCheckpoint> result(new SafetensorsCheckpoint(path, fused));
  result->add_file(std::make_unique<SafetensorsFile>(SafetensorsFile::open(path)));
  return result;
}

std::unique_ptr<SafetensorsCheckpoint> SafetensorsCheckpoint::open_index(const std::string& path,
                                                                         FusedRows fused) {
  std::unique_ptr<SafetensorsCheckpoint> result(new SafetensorsCheckpoint(path, fused));
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  for (const auto& [name, expected] : read_index(path)) {
    const std::string shard = (folder / name).string();
    if (!file_exists(shard)) {
      throw_error(ErrorKind::kNotFound, "{}: the shard is missing, {} names it; download it too",
                  shard, path);
    }
    auto file = std::make_unique<SafetensorsFile>(SafetensorsFile::open(shard));
    for (const std::string& tensor : expected) {
      if (file->find(tensor) == nullptr) {
        throw_error(ErrorKind::kBadFile, "{}: tensor {} is not there, {} says that it is", shard,
                    quote(tensor), path);
      }
    }
    result->add_file(std::move(file));
  }
  return result;
}

void SafetensorsCheckpoint::add_file(std::unique_ptr<SafetensorsFile> file) {
  for (const SafetensorsTensor& tensor : file->tensors()) {
    const auto [other, added] = tensors_.emplace(tensor.name, Stored{&tensor, files_.size()});
    if (!added) {
      throw_error(ErrorKind::kBadFile, "{}: tensor {} is in {} too, expected in one shard",
                  file->path(), quote(tensor.name), files_[other->second.file]->path());
    }
  }
  files_.push_back(std::move(file));
}

const SafetensorsCheckpoint::Stored* SafetensorsCheckpoint::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

bool SafetensorsCheckpoint::has(const std::string& name) const {
  const auto parts = stored_parts(name);
  return std::any_of(parts.begin(), parts.end(),
                     [&](const StoredPart& part) { return find(part.tensor) != nullptr; });
}

RawMatrix SafetensorsCheckpoint::get(const std::string& name, int64_t rows, int64_t cols) {
  for (const StoredPart& part : stored_parts(name)) {
    const Stored* stored = find(part.tensor);
    if (stored == nullptr) continue;
    const RawMatrix matrix = matrix_of(*stored, part, rows, cols);
    used_.mark(part.tensor);
    return matrix;
  }
  throw_error(ErrorKind::kBadFile, "{}: tensor {} of shape {} is missing", path_, quote(name),
              shape_text(rows == 1 ? std::vector{cols} : std::vector{rows, cols}));
}

RawMatrix SafetensorsCheckpoint::matrix_of(const Stored& stored, const StoredPart& part,
                                           int64_t rows, int64_t cols) {
  const SafetensorsTensor& tensor = *stored.tensor;
  const std::string& path = files_[stored.file]->path();
  if (!tensor.dtype || !is_floating(*tensor.dtype)) {
    throw_error(ErrorKind::kUnsupported,
                "{}: tensor {} is of dtype {}, expected F32, F16 or BF16; take an unquantised "
                "checkpoint, or a GGUF file",
                path, quote(tensor.name), tensor.stored_dtype);
  }
  const auto begin = first_element(part, tensor.shape, rows, cols, fused_);
  if (!begin) {
    throw_error(ErrorKind::kBadFile, "{}: tensor {} has the shape {}, expected {} x {}{}", path,
                quote(tensor.name), shape_text(tensor.shape), rows, cols,
                part.is_whole() ? "" : " in each part of it");
  }
  return {.dtype = *tensor.dtype,
          .rows = rows,
          .cols = cols,
          .data = aligned(tensor, *tensor.dtype) + bytes_of(*tensor.dtype, *begin)};
}

const std::byte* SafetensorsCheckpoint::aligned(const SafetensorsTensor& tensor, DType dtype) {
  const auto address = reinterpret_cast<uintptr_t>(tensor.data.data());
  if (address % static_cast<uintptr_t>(block_bytes(dtype)) == 0) return tensor.data.data();
  auto& copy = copies_[tensor.name];
  if (copy.empty()) copy.assign(tensor.data.begin(), tensor.data.end());
  return copy.data();
}

void SafetensorsCheckpoint::release(const RawMatrix& matrix) {
  const std::span bytes(matrix.data, static_cast<size_t>(matrix.rows * matrix.stride_bytes()));
  for (const auto& file : files_) file->release(bytes);
}

void SafetensorsCheckpoint::check_all_used(const std::vector<std::string>& ignored) const {
  std::vector<std::string> names;
  for (const auto& file : files_) {
    for (const SafetensorsTensor& tensor : file->tensors()) names.push_back(tensor.name);
  }
  used_.check(names, ignored, path_);
}

int64_t SafetensorsCheckpoint::total_bytes() const {
  int64_t bytes = 0;
  for (const auto& file : files_) {
    for (const SafetensorsTensor& tensor : file->tensors()) {
      bytes += static_cast<int64_t>(tensor.data.size());
    }
  }
  return bytes;
}

DType SafetensorsCheckpoint::first_dtype() const {
  for (const auto& file : files_) {
    for (const SafetensorsTensor& tensor : file->tensors()) {
      if (tensor.dtype && is_floating(*tensor.dtype)) return *tensor.dtype;
    }
  }
  return DType::kBFloat16;
}

}  // namespace minisgl
