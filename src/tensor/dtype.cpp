#include "tensor/dtype.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "utils/error.h"

namespace minisgl {
namespace {

struct DTypeInfo {
  DType dtype;
  std::string_view name;
  std::string_view alias;
  int64_t block_size;
  int64_t block_bytes;
};

constexpr DTypeInfo kInfo[] = {
    {DType::kFloat32, "float32", "f32", 1, 4},
    {DType::kFloat16, "float16", "f16", 1, 2},
    {DType::kBFloat16, "bfloat16", "bf16", 1, 2},
    {DType::kFloat8E4M3, "float8_e4m3", "f8_e4m3", 1, 1},
    {DType::kFloat8E5M2, "float8_e5m2", "f8_e5m2", 1, 1},
    {DType::kInt8, "int8", "i8", 1, 1},
    {DType::kUInt8, "uint8", "u8", 1, 1},
    {DType::kInt32, "int32", "i32", 1, 4},
    {DType::kInt64, "int64", "i64", 1, 8},
    {DType::kBool, "bool", "bool", 1, 1},
    {DType::kQ4_0, "q4_0", "", 32, 18},
    {DType::kQ4_1, "q4_1", "", 32, 20},
    {DType::kQ5_0, "q5_0", "", 32, 22},
    {DType::kQ5_1, "q5_1", "", 32, 24},
    {DType::kQ8_0, "q8_0", "", 32, 34},
    {DType::kQ2_K, "q2_k", "", 256, 84},
    {DType::kQ3_K, "q3_k", "", 256, 110},
    {DType::kQ4_K, "q4_k", "", 256, 144},
    {DType::kQ5_K, "q5_k", "", 256, 176},
    {DType::kQ6_K, "q6_k", "", 256, 210},
    {DType::kIQ4_NL, "iq4_nl", "", 32, 18},
    {DType::kIQ4_XS, "iq4_xs", "", 256, 136},
    {DType::kMXFP4, "mxfp4", "", 32, 17},
};

const DTypeInfo& info(DType dtype) {
  const DTypeInfo& entry = kInfo[static_cast<size_t>(dtype)];
  MINISGL_DCHECK(entry.dtype == dtype);
  return entry;
}

}  // namespace

std::string_view dtype_name(DType dtype) { return info(dtype).name; }

std::optional<DType> parse_dtype(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (lower.starts_with("torch.")) lower.erase(0, 6);
  if (lower == "fp32" || lower == "float") lower = "float32";
  if (lower == "fp16" || lower == "half") lower = "float16";
  for (const DTypeInfo& entry : kInfo) {
    if (lower == entry.name || (!lower.empty() && lower == entry.alias)) return entry.dtype;
  }
  return std::nullopt;
}

int64_t block_size(DType dtype) { return info(dtype).block_size; }
int64_t block_bytes(DType dtype) { return info(dtype).block_bytes; }
bool is_block_format(DType dtype) { return block_size(dtype) > 1; }
bool is_floating(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}

int64_t bytes_of(DType dtype, int64_t n) {
  MINISGL_CHECK(n >= 0 && n % block_size(dtype) == 0, "{} elements of {} are no whole blocks", n,
                dtype_name(dtype));
  return n / block_size(dtype) * block_bytes(dtype);
}

}  // namespace minisgl
