// The layouts of GGUF's block formats, as files hold them: packed, little endian, no padding.
// `qs` holds the low bits of the quants, `qh` the bits above, `d` the block's scale, `m` or `dmin`
// its minimum.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

namespace minisgl::blocks {

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
inline constexpr float kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                         1,    13,   25,  38,  53,  69,  89,  113};
// Twice the values of E2M1 codes.
inline constexpr float kMxfp4Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// The fifth bit of elements j and j + 16 of a Q5_0 or Q5_1 block, in place.
template <class Block>
std::array<int, 2> fifth_bits(const Block& block, int j) {
  uint32_t qh = 0;
  std::memcpy(&qh, block.qh, sizeof qh);
  return {static_cast<int>(qh >> j << 4 & 16), static_cast<int>(qh >> (j + 12) & 16)};
}

// Factor of group g of 16.
inline int q3_k_scale(const BlockQ3_K& block, int g) {
  const int low = g < 8 ? block.scales[g] & 15 : block.scales[g - 8] >> 4;
  const int high = block.scales[8 + g % 4] >> (2 * (g / 4)) & 3;
  return (low | high << 4) - 32;
}

struct ScaleMin {
  int scale, minimum;
};
// Factors of group j of 8 in the 12 bytes of Q4_K and Q5_K: 6 bits each, those of the last four
// split into 4 low and 2 high bits.
inline ScaleMin scale_min(const uint8_t* scales, int j) {
  if (j < 4) return {scales[j] & 63, scales[j + 4] & 63};
  return {(scales[j + 4] & 15) | scales[j - 4] >> 6 << 4, scales[j + 4] >> 4 | scales[j] >> 6 << 4};
}

// Factor of group g of 8.
inline int iq4_xs_scale(const BlockIQ4_XS& block, int g) {
  const int low = block.scales_l[g / 2] >> (4 * (g % 2)) & 15;
  const int high = block.scales_h >> (2 * g) & 3;
  return (low | high << 4) - 32;
}

}  // namespace minisgl::blocks
