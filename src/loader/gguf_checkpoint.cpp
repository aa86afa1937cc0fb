#include "loader/gguf_checkpoint.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "utils/error.h"
#include "utils/quote.h"

namespace minisgl {
namespace {

struct TypePair {
  std::string_view ggml;
  DType dtype;
};
constexpr TypePair kTypes[] = {
    {"F32", DType::kFloat32}, {"F16", DType::kFloat16},   {"BF16", DType::kBFloat16},
    {"Q4_0", DType::kQ4_0},   {"Q4_1", DType::kQ4_1},     {"Q5_0", DType::kQ5_0},
    {"Q5_1", DType::kQ5_1},   {"Q8_0", DType::kQ8_0},     {"Q2_K", DType::kQ2_K},
    {"Q3_K", DType::kQ3_K},   {"Q4_K", DType::kQ4_K},     {"Q5_K", DType::kQ5_K},
    {"Q6_K", DType::kQ6_K},   {"IQ4_NL", DType::kIQ4_NL}, {"IQ4_XS", DType::kIQ4_XS},
    {"MXFP4", DType::kMXFP4},
};

DType dtype_of(const GgufTensor& tensor, const std::string& path) {
  const std::string_view name = find_ggml_type(tensor.type)->name;
  std::vector<std::string_view> known;
  for (const TypePair& type : kTypes) {
    if (type.ggml == name) return type.dtype;
    known.push_back(type.ggml);
  }
  throw_error(ErrorKind::kUnsupported, "{}: tensor {} is of type {}, expected one of {}", path,
              quote(tensor.name), name, fmt::join(known, ", "));
}

// Outermost first, without the dimensions that the file does not state.
std::vector<int64_t> shape_of(const GgufTensor& tensor) {
  std::vector<int64_t> shape(tensor.dims.begin(), tensor.dims.begin() + tensor.num_dims);
  std::reverse(shape.begin(), shape.end());
  return shape;
}

bool is_query_or_key(const std::string& name) {
  return name.find(".q_proj.") != std::string::npos || name.find(".k_proj.") != std::string::npos;
}

}  // namespace

GgufCheckpoint::GgufCheckpoint(GgufFile file, const ModelConfig& config)
    : file_(std::move(file)),
      family_(find_gguf_family(file_.string("general.architecture").value_or(""), file_.path())),
      head_dim_(config.head_dim),
      fused_{config.num_qo_heads * config.head_dim, config.num_kv_heads * config.head_dim} {
  used_.mark("rope_freqs.weight");  // the config holds its values
}

const GgufTensor* GgufCheckpoint::find(const StoredPart& part) const {
  const auto name = gguf_tensor_name(family_, part.tensor);
  return name ? file_.find_tensor(*name) : nullptr;
}

bool GgufCheckpoint::has(const std::string& name) const {
  const auto parts = stored_parts(name);
  return std::any_of(parts.begin(), parts.end(),
                     [&](const StoredPart& part) { return find(part) != nullptr; });
}

RawMatrix GgufCheckpoint::get(const std::string& name, int64_t rows, int64_t cols) {
  for (const StoredPart& part : stored_parts(name)) {
    const GgufTensor* tensor = find(part);
    if (tensor == nullptr) continue;
    RawMatrix matrix = matrix_of(*tensor, part, rows, cols);
    used_.mark(tensor->name);
    if (family_.norms_plus_one && name.ends_with("norm.weight")) {
      std::vector<float> values = floats_of(matrix, tensor->name);
      for (float& value : values) value -= 1.0f;
      return keep(name, values);
    }
    const bool interleaved = family_.interleaved_qk && is_query_or_key(name);
    if (interleaved && name.ends_with(".weight")) matrix.interleaved_head_dim = head_dim_;
    if (interleaved && name.ends_with(".bias")) {
      // As a column, so that the same rule says where each value lies.
      const std::vector<float> stored = floats_of(matrix, tensor->name);
      const RawMatrix column = {.rows = cols,
                                .cols = 1,
                                .data = reinterpret_cast<const std::byte*>(stored.data()),
                                .interleaved_head_dim = head_dim_};
      std::vector<float> values(stored.size());
      for (int64_t i = 0; i < cols; ++i) {
        std::memcpy(&values[static_cast<size_t>(i)], column.row(i), sizeof(float));
      }
      return keep(name, values);
    }
    return matrix;
  }
  const auto expected = gguf_tensor_name(family_, stored_parts(name).back().tensor);
  throw_error(ErrorKind::kBadFile, "{}: tensor {} ({}) of {} x {} is missing", file_.path(),
              quote(gguf_tensor_name(family_, name).value_or(expected.value_or("no GGUF name"))),
              name, rows, cols);
}

RawMatrix GgufCheckpoint::matrix_of(const GgufTensor& tensor, const StoredPart& part, int64_t rows,
                                    int64_t cols) const {
  const std::string& path = file_.shard_path(tensor.shard);
  const DType dtype = dtype_of(tensor, path);
  const std::vector<int64_t> shape = shape_of(tensor);
  const auto begin = first_element(part, shape, rows, cols, fused_);
  if (!begin || cols % block_size(dtype) != 0 || *begin % block_size(dtype) != 0) {
    throw_error(ErrorKind::kBadFile, "{}: tensor {} has the shape [{}], expected {} x {}{} for {}",
                path, quote(tensor.name), fmt::join(shape, ", "), rows, cols,
                part.is_whole() ? "" : " in each part of it", part.tensor);
  }
  return {.dtype = dtype,
          .rows = rows,
          .cols = cols,
          .data = tensor.data.data() + bytes_of(dtype, *begin)};
}

std::vector<float> GgufCheckpoint::floats_of(const RawMatrix& vector,
                                             const std::string& name) const {
  if (vector.dtype != DType::kFloat32) {
    throw_error(ErrorKind::kUnsupported, "{}: tensor {} is of type {}, expected F32", file_.path(),
                quote(name), dtype_name(vector.dtype));
  }
  std::vector<float> values(static_cast<size_t>(vector.rows * vector.cols));
  std::memcpy(values.data(), vector.data, values.size() * sizeof(float));
  return values;
}

RawMatrix GgufCheckpoint::keep(const std::string& name, const std::vector<float>& values) {
  const std::vector<float>& kept = copies_[name] = values;
  return {.dtype = DType::kFloat32,
          .rows = 1,
          .cols = static_cast<int64_t>(kept.size()),
          .data = reinterpret_cast<const std::byte*>(kept.data())};
}

void GgufCheckpoint::release(const RawMatrix& matrix) {
  const std::span bytes(matrix.data, static_cast<size_t>(matrix.rows * matrix.stride_bytes()));
  for (size_t shard = 0; shard < file_.num_shards(); ++shard) file_.release(shard, bytes);
}

void GgufCheckpoint::check_all_used(const std::vector<std::string>& ignored) const {
  std::vector<std::string> names;
  for (const GgufTensor& tensor : file_.tensors()) names.push_back(tensor.name);
  used_.check(names, ignored, file_.path());
}

int64_t GgufCheckpoint::total_bytes() const {
  int64_t bytes = 0;
  for (const GgufTensor& tensor : file_.tensors()) {
    bytes += static_cast<int64_t>(tensor.data.size());
  }
  return bytes;
}

}  // namespace minisgl
