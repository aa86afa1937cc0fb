// Walks over a panel's weights, whatever they are stored as: one decoder for the one-row kernel,
// which multiplies at once, and for the many-row kernel, which unpacks to float32 first. Both see
// the same bits.
#pragma once

#include "kernel/cpu/isa/isa.h"

namespace minisgl::cpu::MINISGL_ISA {
namespace {

enum class ScaleKind { kHalf, kBFloat16, kSuper };

// Weights as they are: K x [32].
template <PanelLayout kLayout>
struct Plain {
  static constexpr int64_t kBytes =
      kPanel * (kLayout == PanelLayout::kFloat32 ? sizeof(float) : sizeof(uint16_t));
  static constexpr int64_t kBlock = 1;

  MINISGL_INLINE static vf weights(const uint8_t* at, int column) {
    if constexpr (kLayout == PanelLayout::kFloat32) {
      return load(reinterpret_cast<const float*>(at) + column);
    } else if constexpr (kLayout == PanelLayout::kBFloat16) {
      return load_bf16(reinterpret_cast<const uint16_t*>(at) + column);
    } else {
      return load_half(reinterpret_cast<const uint16_t*>(at) + column);
    }
  }

  // Calls use(k, panel, vector, weights) for elements [0, num) of kPanels panels, for kVectors
  // vectors from `column` on.
  template <int kPanels, int kVectors, class Use>
  MINISGL_INLINE static void walk(const uint8_t* const (&panels)[kPanels], int column, int64_t num,
                                  const float*, Use use) {
    for (int64_t k = 0; k < num; ++k) {
      for (int p = 0; p < kPanels; ++p) {
        for (int v = 0; v < kVectors; ++v) {
          use(k, p, v, weights(panels[p] + k * kBytes, column + v * kLanes));
        }
      }
    }
  }
};

// Codes of kBits bits with a scale (and a minimum) a group of kGroup elements.
template <int kBits, ScaleKind kScale, int kGroup, bool kMin>
struct Quantised {
  static constexpr bool kSuper = kScale == ScaleKind::kSuper;
  static constexpr int64_t kBlock = kSuper ? 256 : 32;
  static constexpr int64_t kGroups = kBlock / kGroup;
  static constexpr int64_t kFactorsAt = kPanel * (kMin ? 4 : 2);
  static constexpr int64_t kMinFactorsAt = kFactorsAt + kPanel * kGroups;
  static constexpr int64_t kCodesAt =
      kSuper ? kFactorsAt + kPanel * kGroups * (kMin ? 2 : 1) : kFactorsAt;
  static constexpr int64_t kCodeBytes = kPanel * kGroup * kBits / 8;  // of a group
  static constexpr int64_t kBytes = kCodesAt + kGroups * kCodeBytes;

  MINISGL_INLINE static vf scale(const uint8_t* block, int64_t group, int column) {
    const auto* scales = reinterpret_cast<const uint16_t*>(block) + column;
    if constexpr (kScale == ScaleKind::kBFloat16) return load_bf16(scales);
    if constexpr (!kSuper) return load_half(scales);
    const uint8_t* factors = block + kFactorsAt + group * kPanel + column;
    return mul(load_half(scales), to_float(load_i8(factors)));
  }
  MINISGL_INLINE static vf minimum(const uint8_t* block, int64_t group, int column) {
    if constexpr (!kMin) return zero();
    const vf m = load_half(reinterpret_cast<const uint16_t*>(block) + kPanel + column);
    if constexpr (!kSuper) return m;
    return mul(m, to_float(load_i8(block + kMinFactorsAt + group * kPanel + column)));
  }
  MINISGL_INLINE static vf scaled(vf value, vf scale, vf minimum) {
    if constexpr (kMin) return fmadd(value, scale, minimum);
    return mul(value, scale);
  }

  template <int kPanels, int kVectors, class Use>
  MINISGL_INLINE static void walk(const uint8_t* const (&panels)[kPanels], int column, int64_t num,
                                  const float* values, Use use) {
    [[maybe_unused]] Lookup table{};
    if constexpr (kBits == 4) table = load_lookup(values);
    for (int64_t k = 0; k < num; k += kBlock) {
      const int64_t at = k / kBlock * kBytes;
      for (int64_t g = 0; g < kGroups; ++g) {
        vf scales[kPanels][kVectors];
        vf minima[kPanels][kVectors];
        const uint8_t* codes[kPanels];
        for (int p = 0; p < kPanels; ++p) {
          for (int v = 0; v < kVectors; ++v) {
            scales[p][v] = scale(panels[p] + at, g, column + v * kLanes);
            minima[p][v] = minimum(panels[p] + at, g, column + v * kLanes);
          }
          codes[p] = panels[p] + at + kCodesAt + g * kCodeBytes;
        }
        const int64_t first = k + g * kGroup;
        const auto apply = [&](int64_t i, int p, int v, vf value) MINISGL_INLINE_LAMBDA {
          use(first + i, p, v, scaled(value, scales[p][v], minima[p][v]));
        };
        if constexpr (kBits == 4) {
          nibbles<kPanels, kVectors>(codes, column, table, apply);
        } else {
          for (int64_t i = 0; i < kGroup; ++i) {
            for (int p = 0; p < kPanels; ++p) {
              for (int v = 0; v < kVectors; ++v) {
                apply(i, p, v, to_float(load_i8(codes[p] + i * kPanel + column + v * kLanes)));
              }
            }
          }
        }
      }
    }
  }

 private:
  template <int kPanels, int kVectors, class Apply>
  MINISGL_INLINE static void nibbles(const uint8_t* const (&codes)[kPanels], int column,
                                     const Lookup& table, Apply apply) {
    for (int64_t i = 0; i < kGroup; i += 8) {
      vi words[kPanels][kVectors];
      for (int p = 0; p < kPanels; ++p) {
        for (int v = 0; v < kVectors; ++v) {
          words[p][v] = load_u32(codes[p] + (i / 8 * kPanel + column + v * kLanes) * 4);
        }
      }
      nibble<0, kPanels, kVectors>(words, i, table, apply);
      nibble<1, kPanels, kVectors>(words, i, table, apply);
      nibble<2, kPanels, kVectors>(words, i, table, apply);
      nibble<3, kPanels, kVectors>(words, i, table, apply);
      nibble<4, kPanels, kVectors>(words, i, table, apply);
      nibble<5, kPanels, kVectors>(words, i, table, apply);
      nibble<6, kPanels, kVectors>(words, i, table, apply);
      nibble<7, kPanels, kVectors>(words, i, table, apply);
    }
  }
  template <int kIndex, int kPanels, int kVectors, class Apply>
  MINISGL_INLINE static void nibble(const vi (&words)[kPanels][kVectors], int64_t i,
                                    const Lookup& table, Apply apply) {
    for (int p = 0; p < kPanels; ++p) {
      for (int v = 0; v < kVectors; ++v) {
        apply(i + kIndex, p, v, lookup<4 * kIndex>(table, words[p][v]));
      }
    }
  }
};

// Calls run.template operator()<Format>() with the format of a layout.
template <class Run>
MINISGL_INLINE void dispatch_layout(PanelLayout layout, Run run) {
  using enum ScaleKind;
  switch (layout) {
    case PanelLayout::kFloat32:
      return run.template operator()<Plain<PanelLayout::kFloat32>>();
    case PanelLayout::kBFloat16:
      return run.template operator()<Plain<PanelLayout::kBFloat16>>();
    case PanelLayout::kHalf:
      return run.template operator()<Plain<PanelLayout::kHalf>>();
    case PanelLayout::k4:
      return run.template operator()<Quantised<4, kHalf, 32, false>>();
    case PanelLayout::k4Min:
      return run.template operator()<Quantised<4, kHalf, 32, true>>();
    case PanelLayout::k4BFloat16:
      return run.template operator()<Quantised<4, kBFloat16, 32, false>>();
    case PanelLayout::k4Super16:
      return run.template operator()<Quantised<4, ScaleKind::kSuper, 16, false>>();
    case PanelLayout::k4Super16Min:
      return run.template operator()<Quantised<4, ScaleKind::kSuper, 16, true>>();
    case PanelLayout::k4Super32:
      return run.template operator()<Quantised<4, ScaleKind::kSuper, 32, false>>();
    case PanelLayout::k4Super32Min:
      return run.template operator()<Quantised<4, ScaleKind::kSuper, 32, true>>();
    case PanelLayout::k8:
      return run.template operator()<Quantised<8, kHalf, 32, false>>();
    case PanelLayout::k8Min:
      return run.template operator()<Quantised<8, kHalf, 32, true>>();
    case PanelLayout::k8Super16:
      return run.template operator()<Quantised<8, ScaleKind::kSuper, 16, false>>();
    case PanelLayout::k8Super32Min:
      return run.template operator()<Quantised<8, ScaleKind::kSuper, 32, true>>();
  }
}

}  // namespace
}  // namespace minisgl::cpu::MINISGL_ISA
