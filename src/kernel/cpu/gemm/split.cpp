#include "kernel/cpu/gemm/split.h"

#include <cstring>

#include "kernel/blocks.h"
#include "utils/error.h"

namespace minisgl::cpu {
namespace {

using namespace blocks;  // NOLINT: the file is about nothing else

// Elements j in the low halves of 16 bytes, j + 16 in the high ones.
void split_nibbles(uint8_t* codes, const uint8_t* qs) {
  for (int j = 0; j < 16; ++j) {
    codes[j] = qs[j] & 15;
    codes[j + 16] = qs[j] >> 4;
  }
}

void split(BlockParts& parts, const BlockQ4_0& block) {
  parts.scale = block.d;
  split_nibbles(parts.codes, block.qs);
}

void split(BlockParts& parts, const BlockQ4_1& block) {
  parts.scale = block.d;
  parts.minimum = block.m;
  split_nibbles(parts.codes, block.qs);
}

template <class Block>
void split_five_bits(BlockParts& parts, const Block& block, int offset) {
  for (int j = 0; j < 16; ++j) {
    const auto [low, high] = fifth_bits(block, j);
    parts.codes[j] = static_cast<uint8_t>(((block.qs[j] & 15) | low) - offset);
    parts.codes[j + 16] = static_cast<uint8_t>(((block.qs[j] >> 4) | high) - offset);
  }
}

void split(BlockParts& parts, const BlockQ5_0& block) {
  parts.scale = block.d;
  split_five_bits(parts, block, 16);
}

void split(BlockParts& parts, const BlockQ5_1& block) {
  parts.scale = block.d;
  parts.minimum = block.m;
  split_five_bits(parts, block, 0);
}

void split(BlockParts& parts, const BlockQ8_0& block) {
  parts.scale = block.d;
  std::memcpy(parts.codes, block.qs, sizeof block.qs);
}

// Where the two low bits of group g of 16 stand in Q2_K and Q3_K.
const uint8_t* group_bits(const uint8_t* qs, int g) { return qs + 32 * (g / 8) + 16 * (g % 2); }

void split(BlockParts& parts, const BlockQ2_K& block) {
  parts.scale = block.d;
  parts.minimum = block.dmin;
  for (int g = 0; g < 16; ++g) {
    parts.factors[g] = static_cast<int8_t>(block.scales[g] & 15);
    parts.min_factors[g] = static_cast<int8_t>(-(block.scales[g] >> 4));
    const uint8_t* qs = group_bits(block.qs, g);
    for (int l = 0; l < 16; ++l) parts.codes[16 * g + l] = qs[l] >> (g % 8 / 2 * 2) & 3;
  }
}

void split(BlockParts& parts, const BlockQ3_K& block) {
  parts.scale = block.d;
  for (int g = 0; g < 16; ++g) {
    parts.factors[g] = static_cast<int8_t>(q3_k_scale(block, g));
    const uint8_t* qs = group_bits(block.qs, g);
    const uint8_t* hmask = block.hmask + 16 * (g % 2);
    for (int l = 0; l < 16; ++l) {
      parts.codes[16 * g + l] =
          static_cast<uint8_t>((qs[l] >> (g % 8 / 2 * 2) & 3) | (hmask[l] >> (g / 2) & 1) << 2);
    }
  }
}

template <class Block>
void split_k_factors(BlockParts& parts, const Block& block) {
  parts.scale = block.d;
  parts.minimum = block.dmin;
  for (int g = 0; g < 8; ++g) {
    const ScaleMin group = scale_min(block.scales, g);
    parts.factors[g] = static_cast<int8_t>(group.scale);
    parts.min_factors[g] = static_cast<int8_t>(-group.minimum);
  }
}

void split(BlockParts& parts, const BlockQ4_K& block) {
  split_k_factors(parts, block);
  for (int g = 0; g < 8; g += 2) {
    const uint8_t* qs = block.qs + 16 * g;
    for (int l = 0; l < 32; ++l) {
      parts.codes[32 * g + l] = qs[l] & 15;
      parts.codes[32 * g + 32 + l] = qs[l] >> 4;
    }
  }
}

void split(BlockParts& parts, const BlockQ5_K& block) {
  split_k_factors(parts, block);
  for (int g = 0; g < 8; ++g) {
    const uint8_t* qs = block.qs + 32 * (g / 2);
    for (int l = 0; l < 32; ++l) {
      parts.codes[32 * g + l] =
          static_cast<uint8_t>((qs[l] >> (g % 2 * 4) & 15) | (block.qh[l] >> g & 1) << 4);
    }
  }
}

void split(BlockParts& parts, const BlockQ6_K& block) {
  parts.scale = block.d;
  std::memcpy(parts.factors, block.scales, sizeof block.scales);
  for (int g = 0; g < 8; ++g) {
    const int r = g % 4;
    const uint8_t* ql = block.ql + 64 * (g / 4) + 32 * (r % 2);
    const uint8_t* qh = block.qh + 32 * (g / 4);
    for (int l = 0; l < 32; ++l) {
      const int quant = (ql[l] >> (r / 2 * 4) & 15) | (qh[l] >> (2 * r) & 3) << 4;
      parts.codes[32 * g + l] = static_cast<uint8_t>(quant - 32);
    }
  }
}

void split(BlockParts& parts, const BlockIQ4_NL& block) {
  parts.scale = block.d;
  split_nibbles(parts.codes, block.qs);
}

void split(BlockParts& parts, const BlockIQ4_XS& block) {
  parts.scale = block.d;
  for (int g = 0; g < 8; ++g) {
    parts.factors[g] = static_cast<int8_t>(iq4_xs_scale(block, g));
    split_nibbles(parts.codes + 32 * g, block.qs + 16 * g);
  }
}

void split(BlockParts& parts, const BlockMXFP4& block) {
  // 2^(e - 128) as a bfloat16; the two smallest are subnormal.
  parts.scale = static_cast<uint16_t>(block.e < 2 ? 0x20 << block.e : (block.e - 1) << 7);
  split_nibbles(parts.codes, block.qs);
}

template <class Block>
void split_bytes(BlockParts& parts, const std::byte* bytes) {
  Block block;
  std::memcpy(&block, bytes, sizeof block);
  split(parts, block);
}

}  // namespace

void split_block(BlockParts& parts, const std::byte* block, DType dtype) {
  switch (dtype) {
    case DType::kQ4_0:
      return split_bytes<BlockQ4_0>(parts, block);
    case DType::kQ4_1:
      return split_bytes<BlockQ4_1>(parts, block);
    case DType::kQ5_0:
      return split_bytes<BlockQ5_0>(parts, block);
    case DType::kQ5_1:
      return split_bytes<BlockQ5_1>(parts, block);
    case DType::kQ8_0:
      return split_bytes<BlockQ8_0>(parts, block);
    case DType::kQ2_K:
      return split_bytes<BlockQ2_K>(parts, block);
    case DType::kQ3_K:
      return split_bytes<BlockQ3_K>(parts, block);
    case DType::kQ4_K:
      return split_bytes<BlockQ4_K>(parts, block);
    case DType::kQ5_K:
      return split_bytes<BlockQ5_K>(parts, block);
    case DType::kQ6_K:
      return split_bytes<BlockQ6_K>(parts, block);
    case DType::kIQ4_NL:
      return split_bytes<BlockIQ4_NL>(parts, block);
    case DType::kIQ4_XS:
      return split_bytes<BlockIQ4_XS>(parts, block);
    case DType::kMXFP4:
      return split_bytes<BlockMXFP4>(parts, block);
    default:
      throw_error(ErrorKind::kInternal, "{} is no block format", dtype_name(dtype));
  }
}

}  // namespace minisgl::cpu
