#include "kernel/cpu/gemm/layout.h"

#include "kernel/blocks.h"
#include "utils/error.h"

namespace minisgl::cpu {
namespace {

constexpr float kIdentity[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
constexpr float kMinus8[16] = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
constexpr float kMinus4[16] = {-4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

PanelShape plain(int bits) { return {bits, 1, 1, false, 0, 0, 0, int64_t{kPanel} * bits / 8}; }

PanelShape quantised(int bits, int64_t block, int64_t group, bool has_min) {
  PanelShape shape{};
  shape.bits = bits;
  shape.block = block;
  shape.groups = block / group;
  shape.has_min = has_min;
  const int64_t factor_bytes = shape.is_super() ? kPanel * shape.groups : 0;
  shape.factors_at = kPanel * (has_min ? 4 : 2);
  shape.minima_at = shape.factors_at + factor_bytes;
  shape.codes_at = shape.minima_at + (has_min ? factor_bytes : 0);
  shape.block_bytes = shape.codes_at + kPanel * block * bits / 8;
  return shape;
}

}  // namespace

PanelShape panel_shape(PanelLayout layout) {
  switch (layout) {
    case PanelLayout::kFloat32:
      return plain(32);
    case PanelLayout::kBFloat16:
    case PanelLayout::kHalf:
      return plain(16);
    case PanelLayout::k4:
    case PanelLayout::k4BFloat16:
      return quantised(4, 32, 32, false);
    case PanelLayout::k4Min:
      return quantised(4, 32, 32, true);
    case PanelLayout::k4Super16:
      return quantised(4, 256, 16, false);
    case PanelLayout::k4Super16Min:
      return quantised(4, 256, 16, true);
    case PanelLayout::k4Super32:
      return quantised(4, 256, 32, false);
    case PanelLayout::k4Super32Min:
      return quantised(4, 256, 32, true);
    case PanelLayout::k8:
      return quantised(8, 32, 32, false);
    case PanelLayout::k8Min:
      return quantised(8, 32, 32, true);
    case PanelLayout::k8Super16:
      return quantised(8, 256, 16, false);
    case PanelLayout::k8Super32Min:
      return quantised(8, 256, 32, true);
  }
  throw_error(ErrorKind::kInternal, "panel layout {}", static_cast<int>(layout));
}

PanelLayout panel_layout(DType source, DType dtype) {
  switch (source) {
    case DType::kFloat32:
    case DType::kFloat16:
    case DType::kBFloat16: {
      const DType kept = dtype == DType::kFloat32 ? source : dtype;
      if (kept == DType::kFloat32) return PanelLayout::kFloat32;
      return kept == DType::kBFloat16 ? PanelLayout::kBFloat16 : PanelLayout::kHalf;
    }
    case DType::kQ4_0:
    case DType::kIQ4_NL:
      return PanelLayout::k4;
    case DType::kQ4_1:
      return PanelLayout::k4Min;
    case DType::kMXFP4:
      return PanelLayout::k4BFloat16;
    case DType::kQ2_K:
      return PanelLayout::k4Super16Min;
    case DType::kQ3_K:
      return PanelLayout::k4Super16;
    case DType::kQ4_K:
      return PanelLayout::k4Super32Min;
    case DType::kIQ4_XS:
      return PanelLayout::k4Super32;
    case DType::kQ8_0:
    case DType::kQ5_0:
      return PanelLayout::k8;
    case DType::kQ5_1:
      return PanelLayout::k8Min;
    case DType::kQ5_K:
      return PanelLayout::k8Super32Min;
    case DType::kQ6_K:
      return PanelLayout::k8Super16;
    default:
      throw_error(ErrorKind::kUnsupported, "the CPU has no kernel for weights of {}",
                  dtype_name(source));
  }
}

const float* code_values(DType source) {
  switch (source) {
    case DType::kQ4_0:
      return kMinus8;
    case DType::kQ3_K:
      return kMinus4;
    case DType::kQ4_1:
    case DType::kQ2_K:
    case DType::kQ4_K:
      return kIdentity;
    case DType::kIQ4_NL:
    case DType::kIQ4_XS:
      return blocks::kIq4Values;
    case DType::kMXFP4:
      return blocks::kMxfp4Values;
    default:
      return nullptr;
  }
}

}  // namespace minisgl::cpu
