#include "kernel/dequantize.h"

#include <array>
#include <bit>
#include <cstring>

#include "tensor/half.h"
#include "utils/error.h"

// The structs below are the files' layouts: packed, little endian, no padding. `qs` holds the low
// bits of the quants, `qh` the bits above, `d` the block's scale, `m` or `dmin` its minimum.
namespace minisgl {
namespace {

using Half = uint16_t;  // bits of an IEEE half

struct BlockQ4_0 {
  static constexpr int kSize = 32;
  Half d;
  uint8_t qs[16];
};
struct BlockQ4_1 {
  static constexpr int kSize = 32;
  Half d, m;
  uint8_t qs[16];
};
struct BlockQ5_0 {
  static constexpr int kSize = 32;
  Half d;
  uint8_t qh[4];
  uint8_t qs[16];
};
struct BlockQ5_1 {
  static constexpr int kSize = 32;
  Half d, m;
  uint8_t qh[4];
  uint8_t qs[16];
};
struct BlockQ8_0 {
  static constexpr int kSize = 32;
  Half d;
  int8_t qs[32];
};
struct BlockQ2_K {
  static constexpr int kSize = 256;
  uint8_t scales[16];  // of 16 elements each: scale in the low half, minimum in the high half
  uint8_t qs[64];
  Half d, dmin;
};
struct BlockQ3_K {
  static constexpr int kSize = 256;
  uint8_t hmask[32];  // the third bits; a cleared one means - 4
  uint8_t qs[64];
  uint8_t scales[12];  // 16 of 6 bits
  Half d;
};
struct BlockQ4_K {
  static constexpr int kSize = 256;
  Half d, dmin;
  uint8_t scales[12];  // 8 scales and 8 minima of 6 bits
  uint8_t qs[128];
};
struct BlockQ5_K {
  static constexpr int kSize = 256;
  Half d, dmin;
  uint8_t scales[12];
  uint8_t qh[32];
  uint8_t qs[128];
};
struct BlockQ6_K {
  static constexpr int kSize = 256;
  uint8_t ql[128];
  uint8_t qh[64];
  int8_t scales[16];
  Half d;
};
struct BlockIQ4_NL {
  static constexpr int kSize = 32;
  Half d;
  uint8_t qs[16];
};
struct BlockIQ4_XS {
  static constexpr int kSize = 256;
  Half d;
  uint16_t scales_h;
  uint8_t scales_l[4];
  uint8_t qs[128];
};
struct BlockMXFP4 {
  static constexpr int kSize = 32;
  uint8_t e;  // the scale's exponent
  uint8_t qs[16];
};

// Values that the 4-bit codes of IQ4_NL and IQ4_XS stand for.
constexpr float kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                  1,    13,   25,  38,  53,  69,  89,  113};
// Twice the values of E2M1 codes.
constexpr float kMxfp4Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

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

// The fifth bit of elements j and j + 16, in place.
template <class Block>
std::array<int, 2> fifth_bits(const Block& block, int j) {
  uint32_t qh = 0;
  std::memcpy(&qh, block.qh, sizeof qh);
  return {static_cast<int>(qh >> j << 4 & 16), static_cast<int>(qh >> (j + 12) & 16)};
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

int q3_k_scale(const BlockQ3_K& block, int g) {
  const int low = g < 8 ? block.scales[g] & 15 : block.scales[g - 8] >> 4;
  const int high = block.scales[8 + g % 4] >> (2 * (g / 4)) & 3;
  return (low | high << 4) - 32;
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

struct ScaleMin {
  float scale, minimum;
};
// Scale and minimum j of 8 in the 12 bytes of Q4_K and Q5_K: 6 bits each, those of the last four
// split into 4 low and 2 high bits.
ScaleMin scale_min(const uint8_t* scales, int j) {
  if (j < 4) {
    return {static_cast<float>(scales[j] & 63), static_cast<float>(scales[j + 4] & 63)};
  }
  return {static_cast<float>((scales[j + 4] & 15) | scales[j - 4] >> 6 << 4),
          static_cast<float>(scales[j + 4] >> 4 | scales[j] >> 6 << 4)};
}

void decode(float* y, const BlockQ4_K& block) {
  const float d = half_to_float(block.d);
  const float dmin = half_to_float(block.dmin);
  for (int g = 0; g < 8; ++g, y += 32) {
    const ScaleMin group = scale_min(block.scales, g);
    const float scale = d * group.scale;
    const float minimum = dmin * group.minimum;
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
    const float scale = d * group.scale;
    const float minimum = dmin * group.minimum;
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
      y[l] = d * static_cast<float>(scales[l / 16]) * static_cast<float>(quant);
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
    const int low = block.scales_l[g / 2] >> (4 * (g % 2)) & 15;
    const int high = block.scales_h >> (2 * g) & 3;
    const float scale = d * static_cast<float>((low | high << 4) - 32);
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
