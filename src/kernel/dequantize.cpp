#include "kernel/dequantize.h"

#include <bit>
#include <cstring>

#include "kernel/blocks.h"
#include "tensor/half.h"
#include "utils/error.h"

namespace minisgl {
namespace {

using namespace blocks;  // NOLINT: the file is about nothing else

// 2^(e - 128): half the scale, since kMxfp4Values are doubled. The two smallest are subnormal.
float mxfp4_half_scale(uint8_t e) {
  const uint32_t bits = e < 2 ? 0x00200000u << e : static_cast<uint32_t>(e - 1) << 23;
  return std::bit_cast<float>(bits);
}

void decode(float* y, const BlockQ4_0& block) {
  const float d = half_to_float(block.d);
  for (int j = 0; j < 16; ++j) {
    y[j] = static_cast<float>((block.qs[j] & 15) - 8) * d;
    y[j + 16] = static_cast<float>((block.qs[j] >> 4) - 8) * d;
  }
}

void decode(float* y, const BlockQ4_1& block) {
  const float d = half_to_float(block.d);
  const float m = half_to_float(block.m);
  for (int j = 0; j < 16; ++j) {
    y[j] = static_cast<float>(block.qs[j] & 15) * d + m;
    y[j + 16] = static_cast<float>(block.qs[j] >> 4) * d + m;
  }
}

void decode(float* y, const BlockQ5_0& block) {
  const float d = half_to_float(block.d);
  for (int j = 0; j < 16; ++j) {
    const auto [low, high] = fifth_bits(block, j);
    y[j] = static_cast<float>(((block.qs[j] & 15) | low) - 16) * d;
    y[j + 16] = static_cast<float>(((block.qs[j] >> 4) | high) - 16) * d;
  }
}

void decode(float* y, const BlockQ5_1& block) {
  const float d = half_to_float(block.d);
  const float m = half_to_float(block.m);
  for (int j = 0; j < 16; ++j) {
    const auto [low, high] = fifth_bits(block, j);
    y[j] = static_cast<float>((block.qs[j] & 15) | low) * d + m;
    y[j + 16] = static_cast<float>((block.qs[j] >> 4) | high) * d + m;
  }
}

void decode(float* y, const BlockQ8_0& block) {
  const float d = half_to_float(block.d);
  for (int j = 0; j < 32; ++j) y[j] = static_cast<float>(block.qs[j]) * d;
}

// Elements come in groups of 16 with a scale each: group g = 8 * half + 2 * j + k lies in bits
// 2j, 2j + 1 of bytes 32 * half + 16 * k ….
void decode(float* y, const BlockQ2_K& block) {
  const float d = half_to_float(block.d);
  const float dmin = half_to_float(block.dmin);
  for (int g = 0; g < 16; ++g, y += 16) {
    const float scale = d * static_cast<float>(block.scales[g] & 15);
    const float minimum = dmin * static_cast<float>(block.scales[g] >> 4);
    const uint8_t* qs = block.qs + 32 * (g / 8) + 16 * (g % 2);
    const int shift = g % 8 / 2 * 2;
    for (int l = 0; l < 16; ++l) {
      y[l] = scale * static_cast<float>(qs[l] >> shift & 3) - minimum;
    }
  }
}

// Groups as in Q2_K; the third bit of group g is bit g / 2 of hmask[16 * (g % 2) + l].
void decode(float* y, const BlockQ3_K& block) {
  const float d = half_to_float(block.d);
  for (int g = 0; g < 16; ++g, y += 16) {
    const float scale = d * static_cast<float>(q3_k_scale(block, g));
    const uint8_t* qs = block.qs + 32 * (g / 8) + 16 * (g % 2);
    const uint8_t* hmask = block.hmask + 16 * (g % 2);
    const int shift = g % 8 / 2 * 2;
    for (int l = 0; l < 16; ++l) {
      const int high = hmask[l] >> (g / 2) & 1;
      y[l] = scale * static_cast<float>((qs[l] >> shift & 3) - (high ? 0 : 4));
    }
  }
}

void decode(float* y, const BlockQ4_K& block) {
  const float d = half_to_float(block.d);
  const float dmin = half_to_float(block.dmin);
  for (int g = 0; g < 8; ++g, y += 32) {
    const ScaleMin group = scale_min(block.scales, g);
    const float scale = d * static_cast<float>(group.scale);
    const float minimum = dmin * static_cast<float>(group.minimum);
    const uint8_t* qs = block.qs + 32 * (g / 2);
    const int shift = g % 2 * 4;
    for (int l = 0; l < 32; ++l) {
      y[l] = scale * static_cast<float>(qs[l] >> shift & 15) - minimum;
    }
  }
}

void decode(float* y, const BlockQ5_K& block) {
  const float d = half_to_float(block.d);
  const float dmin = half_to_float(block.dmin);
  for (int g = 0; g < 8; ++g, y += 32) {
    const ScaleMin group = scale_min(block.scales, g);
    const float scale = d * static_cast<float>(group.scale);
    const float minimum = dmin * static_cast<float>(group.minimum);
    const uint8_t* qs = block.qs + 32 * (g / 2);
    const int shift = g % 2 * 4;
    for (int l = 0; l < 32; ++l) {
      const int quant = (qs[l] >> shift & 15) + (block.qh[l] >> g & 1) * 16;
      y[l] = scale * static_cast<float>(quant) - minimum;
    }
  }
}

// Each half of 128 elements: four rows of 32, row r in nibble r / 2 of ql[32 * (r % 2) …] and bits
// 2r, 2r + 1 of qh.
void decode(float* y, const BlockQ6_K& block) {
  const float d = half_to_float(block.d);
  for (int g = 0; g < 8; ++g, y += 32) {
    const int r = g % 4;
    const uint8_t* ql = block.ql + 64 * (g / 4) + 32 * (r % 2);
    const uint8_t* qh = block.qh + 32 * (g / 4);
    const int8_t* scales = block.scales + 2 * g;
    for (int l = 0; l < 32; ++l) {
      const int quant = ((ql[l] >> (r / 2 * 4) & 15) | (qh[l] >> (2 * r) & 3) << 4) - 32;
      y[l] = d * static_cast<float>(scales[l < 16 ? 0 : 1]) * static_cast<float>(quant);
    }
  }
}

void decode(float* y, const BlockIQ4_NL& block) {
  const float d = half_to_float(block.d);
  for (int j = 0; j < 16; ++j) {
    y[j] = d * kIq4Values[block.qs[j] & 15];
    y[j + 16] = d * kIq4Values[block.qs[j] >> 4];
  }
}

void decode(float* y, const BlockIQ4_XS& block) {
  const float d = half_to_float(block.d);
  for (int g = 0; g < 8; ++g, y += 32) {
    const float scale = d * static_cast<float>(iq4_xs_scale(block, g));
    const uint8_t* qs = block.qs + 16 * g;
    for (int j = 0; j < 16; ++j) {
      y[j] = scale * kIq4Values[qs[j] & 15];
      y[j + 16] = scale * kIq4Values[qs[j] >> 4];
    }
  }
}

void decode(float* y, const BlockMXFP4& block) {
  const float d = mxfp4_half_scale(block.e);
  for (int j = 0; j < 16; ++j) {
    y[j] = kMxfp4Values[block.qs[j] & 15] * d;
    y[j + 16] = kMxfp4Values[block.qs[j] >> 4] * d;
  }
}

template <class Block>
void decode_blocks(float* out, const std::byte* in, DType dtype, int64_t n) {
  MINISGL_DCHECK(sizeof(Block) == static_cast<size_t>(block_bytes(dtype)));
  MINISGL_CHECK(n % Block::kSize == 0, "{} elements of {} are no whole blocks", n,
                dtype_name(dtype));
  for (int64_t i = 0; i < n; i += Block::kSize, in += sizeof(Block)) {
    Block block;
    std::memcpy(&block, in, sizeof block);
    decode(out + i, block);
  }
}

template <float (*ToFloat)(uint16_t)>
void widen(float* out, const std::byte* in, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, in + 2 * i, sizeof bits);
    out[i] = ToFloat(bits);
  }
}

}  // namespace

void dequantize(float* out, const std::byte* in, DType dtype, int64_t n) {
  switch (dtype) {
    case DType::kFloat32:
      std::memcpy(out, in, static_cast<size_t>(n) * sizeof(float));
      return;
    case DType::kFloat16:
      return widen<half_to_float>(out, in, n);
    case DType::kBFloat16:
      return widen<bfloat16_to_float>(out, in, n);
    case DType::kQ4_0:
      return decode_blocks<BlockQ4_0>(out, in, dtype, n);
    case DType::kQ4_1:
      return decode_blocks<BlockQ4_1>(out, in, dtype, n);
    case DType::kQ5_0:
      return decode_blocks<BlockQ5_0>(out, in, dtype, n);
    case DType::kQ5_1:
      return decode_blocks<BlockQ5_1>(out, in, dtype, n);
    case DType::kQ8_0:
      return decode_blocks<BlockQ8_0>(out, in, dtype, n);
    case DType::kQ2_K:
      return decode_blocks<BlockQ2_K>(out, in, dtype, n);
    case DType::kQ3_K:
      return decode_blocks<BlockQ3_K>(out, in, dtype, n);
    case DType::kQ4_K:
      return decode_blocks<BlockQ4_K>(out, in, dtype, n);
    case DType::kQ5_K:
      return decode_blocks<BlockQ5_K>(out, in, dtype, n);
    case DType::kQ6_K:
      return decode_blocks<BlockQ6_K>(out, in, dtype, n);
    case DType::kIQ4_NL:
      return decode_blocks<BlockIQ4_NL>(out, in, dtype, n);
    case DType::kIQ4_XS:
      return decode_blocks<BlockIQ4_XS>(out, in, dtype, n);
    case DType::kMXFP4:
      return decode_blocks<BlockMXFP4>(out, in, dtype, n);
    case DType::kFloat8E4M3:
    case DType::kFloat8E5M2:
    case DType::kInt8:
    case DType::kUInt8:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kBool:
      break;
  }
  throw_error(ErrorKind::kUnsupported,
              "weights of dtype {} cannot become float32, expected float32, float16, bfloat16 or a "
              "block format",
              dtype_name(dtype));
}

}  // namespace minisgl
