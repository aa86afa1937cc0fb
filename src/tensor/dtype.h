// Element types of tensors: plain ones, and the block formats of GGUF files.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace minisgl {

enum class DType : uint8_t {
  kFloat32,
  kFloat16,
  kBFloat16,
  kFloat8E4M3,
  kFloat8E5M2,
  kInt8,
  kUInt8,
  kInt32,
  kInt64,
  kBool,
  // Block formats: block_size() consecutive elements of a row share scales.
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ4_NL,
  kIQ4_XS,
  kMXFP4,
};

// "float32", "bfloat16", "q4_1", …
std::string_view dtype_name(DType dtype);
// Accepts the names above, Hugging Face's "torch.float32" and the short forms f32, fp16, bf16, ….
std::optional<DType> parse_dtype(std::string_view name);

// Elements that are stored together: 1 for plain types, 32 or 256 for block formats.
int64_t block_size(DType dtype);
// Bytes of one such block (of one element for plain types).
int64_t block_bytes(DType dtype);
bool is_block_format(DType dtype);
bool is_floating(DType dtype);  // float32, float16, bfloat16

// Bytes of `n` elements; n must be a multiple of block_size().
int64_t bytes_of(DType dtype, int64_t n);

}  // namespace minisgl
