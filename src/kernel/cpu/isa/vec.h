// A thin vector of floats for the instruction set that this file is compiled for. Included by the
// sources of cpu/isa/ only: everything is in an unnamed namespace, so that no function compiled for
// AVX-512 can be linked into code for a lesser machine. For the same reason those sources include
// no standard templates.
//
//   vf, vi, vm   kLanes floats, 32-bit integers, truth values
//   fmadd(a, b, c) = a * b + c, rounded once where the machine can
#pragma once

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define MINISGL_INLINE inline __attribute__((always_inline))
#define MINISGL_INLINE_LAMBDA __attribute__((always_inline))

namespace minisgl::cpu {
namespace {

// The plain conversions, for the instruction sets that have none of their own.
[[maybe_unused]] MINISGL_INLINE float scalar_half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t magnitude = half & 0x7fff;
  uint32_t bits = magnitude << 13;
  if (magnitude >= 0x7c00) {
    bits |= 0x7f800000;
  } else {
    float value = 0;
    memcpy(&value, &bits, sizeof value);
    value *= 0x1p112f;  // moves the exponent's bias; right for subnormals too
    memcpy(&bits, &value, sizeof bits);
  }
  bits |= sign;
  float result = 0;
  memcpy(&result, &bits, sizeof result);
  return result;
}

[[maybe_unused]] MINISGL_INLINE uint16_t scalar_float_to_half(float value) {
  uint32_t bits = 0;
  memcpy(&bits, &value, sizeof bits);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00);
  if (magnitude >= 0x47800000) return static_cast<uint16_t>(sign | 0x7c00);
  if (magnitude < 0x38800000) {
    float sum = 0;
    memcpy(&sum, &magnitude, sizeof sum);
    sum += 0.5f;  // whose last bit is worth a half's smallest step
    memcpy(&bits, &sum, sizeof bits);
    return static_cast<uint16_t>(sign | (bits - 0x3f000000));
  }
  const uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000) >> 13));
}

#if defined(__AVX512F__)

constexpr int kLanes = 16;
using vf = __m512;
using vi = __m512i;
using vm = __mmask16;

MINISGL_INLINE vf zero() { return _mm512_setzero_ps(); }
MINISGL_INLINE vf set1(float x) { return _mm512_set1_ps(x); }
MINISGL_INLINE vf load(const float* p) { return _mm512_loadu_ps(p); }
MINISGL_INLINE void store(float* p, vf a) { _mm512_storeu_ps(p, a); }
MINISGL_INLINE vm first_lanes(int64_t n) { return static_cast<vm>((1u << n) - 1); }
MINISGL_INLINE vf load_n(const float* p, int64_t n) {
  return _mm512_maskz_loadu_ps(first_lanes(n), p);
}
MINISGL_INLINE void store_n(float* p, vf a, int64_t n) {
  _mm512_mask_storeu_ps(p, first_lanes(n), a);
}
MINISGL_INLINE vf add(vf a, vf b) { return _mm512_add_ps(a, b); }
MINISGL_INLINE vf sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
MINISGL_INLINE vf mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
MINISGL_INLINE vf div(vf a, vf b) { return _mm512_div_ps(a, b); }
MINISGL_INLINE vf fmadd(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
MINISGL_INLINE vf max(vf a, vf b) { return _mm512_max_ps(a, b); }
MINISGL_INLINE vf min(vf a, vf b) { return _mm512_min_ps(a, b); }
MINISGL_INLINE vm less(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
MINISGL_INLINE vf select(vm m, vf yes, vf no) { return _mm512_mask_blend_ps(m, no, yes); }
MINISGL_INLINE vf abs(vf a) { return _mm512_abs_ps(a); }

MINISGL_INLINE vi as_int(vf a) { return _mm512_castps_si512(a); }
MINISGL_INLINE vf as_float(vi a) { return _mm512_castsi512_ps(a); }
MINISGL_INLINE vi set1i(int32_t x) { return _mm512_set1_epi32(x); }
MINISGL_INLINE vi addi(vi a, vi b) { return _mm512_add_epi32(a, b); }
template <int kBits>
MINISGL_INLINE vi shift_left(vi a) {
  return _mm512_slli_epi32(a, kBits);
}
MINISGL_INLINE vf to_float(vi a) { return _mm512_cvtepi32_ps(a); }

MINISGL_INLINE vi load_u32(const uint8_t* p) { return _mm512_loadu_si512(p); }
MINISGL_INLINE vi load_i8(const uint8_t* p) {
  return _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
MINISGL_INLINE vf load_bf16(const uint16_t* p) {
  const __m256i raw = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return as_float(_mm512_slli_epi32(_mm512_cvtepu16_epi32(raw), 16));
}
MINISGL_INLINE vf load_half(const uint16_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
MINISGL_INLINE void store_half(uint16_t* p, vf a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

// values[code & 15] of each lane.
struct Lookup {
  vf values;
};
MINISGL_INLINE Lookup load_lookup(const float* values) { return {load(values)}; }
template <int kShift>
MINISGL_INLINE vf lookup(const Lookup& table, vi codes) {
  return _mm512_permutexvar_ps(_mm512_srli_epi32(codes, kShift), table.values);
}

MINISGL_INLINE float sum_lanes(vf a) {
  __m256 b = _mm256_add_ps(_mm512_castps512_ps256(a),
                           _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(a), 1)));
  __m128 c = _mm_add_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
  c = _mm_add_ps(c, _mm_movehl_ps(c, c));
  return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}
MINISGL_INLINE float max_lanes(vf a) {
  __m256 b = _mm256_max_ps(_mm512_castps512_ps256(a),
                           _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(a), 1)));
  __m128 c = _mm_max_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
  c = _mm_max_ps(c, _mm_movehl_ps(c, c));
  return _mm_cvtss_f32(_mm_max_ss(c, _mm_movehdup_ps(c)));
}

// rows[i] lane j <-> rows[j] lane i
MINISGL_INLINE void transpose(vf rows[kLanes]) {
  vf t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_ps(rows[i], rows[i + 1]);
    t[i + 1] = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
  }
  vf u[16];
  for (int i = 0; i < 16; i += 4) {
    for (int j = 0; j < 2; ++j) {
      const __m512d a = _mm512_castps_pd(t[i + j]);
      const __m512d b = _mm512_castps_pd(t[i + j + 2]);
      u[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
      u[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
    }
  }
  // u[4 g + c] holds, in its 128-bit part q, rows 4 g … 4 g + 3 of column 4 q + c.
  for (int c = 0; c < 4; ++c) {
    const vf low01 = _mm512_shuffle_f32x4(u[c], u[4 + c], 0x88);
    const vf high01 = _mm512_shuffle_f32x4(u[c], u[4 + c], 0xdd);
    const vf low23 = _mm512_shuffle_f32x4(u[8 + c], u[12 + c], 0x88);
    const vf high23 = _mm512_shuffle_f32x4(u[8 + c], u[12 + c], 0xdd);
    rows[c] = _mm512_shuffle_f32x4(low01, low23, 0x88);
    rows[4 + c] = _mm512_shuffle_f32x4(high01, high23, 0x88);
    rows[8 + c] = _mm512_shuffle_f32x4(low01, low23, 0xdd);
    rows[12 + c] = _mm512_shuffle_f32x4(high01, high23, 0xdd);
  }
}

#elif defined(__AVX2__)

constexpr int kLanes = 8;
using vf = __m256;
using vi = __m256i;
using vm = __m256;

MINISGL_INLINE vf zero() { return _mm256_setzero_ps(); }
MINISGL_INLINE vf set1(float x) { return _mm256_set1_ps(x); }
MINISGL_INLINE vf load(const float* p) { return _mm256_loadu_ps(p); }
MINISGL_INLINE void store(float* p, vf a) { _mm256_storeu_ps(p, a); }
MINISGL_INLINE vi first_lanes(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
MINISGL_INLINE vf load_n(const float* p, int64_t n) {
  return _mm256_maskload_ps(p, first_lanes(n));
}
MINISGL_INLINE void store_n(float* p, vf a, int64_t n) {
  _mm256_maskstore_ps(p, first_lanes(n), a);
}
MINISGL_INLINE vf add(vf a, vf b) { return _mm256_add_ps(a, b); }
MINISGL_INLINE vf sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
MINISGL_INLINE vf mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
MINISGL_INLINE vf div(vf a, vf b) { return _mm256_div_ps(a, b); }
MINISGL_INLINE vf fmadd(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
MINISGL_INLINE vf max(vf a, vf b) { return _mm256_max_ps(a, b); }
MINISGL_INLINE vf min(vf a, vf b) { return _mm256_min_ps(a, b); }
MINISGL_INLINE vm less(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
MINISGL_INLINE vf select(vm m, vf yes, vf no) { return _mm256_blendv_ps(no, yes, m); }
MINISGL_INLINE vf abs(vf a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }

MINISGL_INLINE vi as_int(vf a) { return _mm256_castps_si256(a); }
MINISGL_INLINE vf as_float(vi a) { return _mm256_castsi256_ps(a); }
MINISGL_INLINE vi set1i(int32_t x) { return _mm256_set1_epi32(x); }
MINISGL_INLINE vi addi(vi a, vi b) { return _mm256_add_epi32(a, b); }
template <int kBits>
MINISGL_INLINE vi shift_left(vi a) {
  return _mm256_slli_epi32(a, kBits);
}
MINISGL_INLINE vf to_float(vi a) { return _mm256_cvtepi32_ps(a); }

MINISGL_INLINE vi load_u32(const uint8_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
MINISGL_INLINE vi load_i8(const uint8_t* p) {
  return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
}
MINISGL_INLINE vf load_bf16(const uint16_t* p) {
  const __m128i raw = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return as_float(_mm256_slli_epi32(_mm256_cvtepu16_epi32(raw), 16));
}
MINISGL_INLINE vf load_half(const uint16_t* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
MINISGL_INLINE void store_half(uint16_t* p, vf a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
}

struct Lookup {
  vf low, high;
};
MINISGL_INLINE Lookup load_lookup(const float* values) { return {load(values), load(values + 8)}; }
template <int kShift>
MINISGL_INLINE vf lookup(const Lookup& table, vi codes) {
  const vi index = _mm256_srli_epi32(codes, kShift);        // the permutations look at 3 bits,
  const vi fourth = _mm256_slli_epi32(codes, 28 - kShift);  // the blend at the sign
  return _mm256_blendv_ps(_mm256_permutevar8x32_ps(table.low, index),
                          _mm256_permutevar8x32_ps(table.high, index), as_float(fourth));
}

MINISGL_INLINE float sum_lanes(vf a) {
  __m128 c = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  c = _mm_add_ps(c, _mm_movehl_ps(c, c));
  return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}
MINISGL_INLINE float max_lanes(vf a) {
  __m128 c = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  c = _mm_max_ps(c, _mm_movehl_ps(c, c));
  return _mm_cvtss_f32(_mm_max_ss(c, _mm_movehdup_ps(c)));
}

MINISGL_INLINE void transpose(vf rows[kLanes]) {
  vf t[8];
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
  }
  vf u[8];
  for (int i = 0; i < 8; i += 4) {
    u[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    u[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
    u[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    u[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
  for (int c = 0; c < 4; ++c) {
    rows[c] = _mm256_permute2f128_ps(u[c], u[4 + c], 0x20);
    rows[4 + c] = _mm256_permute2f128_ps(u[c], u[4 + c], 0x31);
  }
}

#else  // the compiler's own vectors: SSE, NEON, or whatever the machine has

constexpr int kLanes = 4;
typedef float vf __attribute__((vector_size(16)));
typedef int32_t vi __attribute__((vector_size(16)));
typedef int32_t vm __attribute__((vector_size(16)));

MINISGL_INLINE vf set1(float x) { return vf{x, x, x, x}; }
MINISGL_INLINE vf zero() { return set1(0.0f); }
MINISGL_INLINE vf load(const float* p) {
  vf a;
  memcpy(&a, p, sizeof a);
  return a;
}
MINISGL_INLINE void store(float* p, vf a) { memcpy(p, &a, sizeof a); }
MINISGL_INLINE vf load_n(const float* p, int64_t n) {
  vf a = zero();
  for (int64_t i = 0; i < n; ++i) a[i] = p[i];
  return a;
}
MINISGL_INLINE void store_n(float* p, vf a, int64_t n) {
  for (int64_t i = 0; i < n; ++i) p[i] = a[i];
}
MINISGL_INLINE vf add(vf a, vf b) { return a + b; }
MINISGL_INLINE vf sub(vf a, vf b) { return a - b; }
MINISGL_INLINE vf mul(vf a, vf b) { return a * b; }
MINISGL_INLINE vf div(vf a, vf b) { return a / b; }
MINISGL_INLINE vf fmadd(vf a, vf b, vf c) { return a * b + c; }
MINISGL_INLINE vi as_int(vf a) { return reinterpret_cast<vi>(a); }
MINISGL_INLINE vf as_float(vi a) { return reinterpret_cast<vf>(a); }
MINISGL_INLINE vm less(vf a, vf b) { return a < b; }
MINISGL_INLINE vf select(vm m, vf yes, vf no) {
  return as_float((m & as_int(yes)) | (~m & as_int(no)));
}
MINISGL_INLINE vf max(vf a, vf b) { return select(a > b, a, b); }
MINISGL_INLINE vf min(vf a, vf b) { return select(a < b, a, b); }
MINISGL_INLINE vi set1i(int32_t x) { return vi{x, x, x, x}; }
MINISGL_INLINE vf abs(vf a) { return as_float(as_int(a) & set1i(0x7fffffff)); }
MINISGL_INLINE vi addi(vi a, vi b) { return a + b; }
template <int kBits>
MINISGL_INLINE vi shift_left(vi a) {
  return a << kBits;
}
MINISGL_INLINE vf to_float(vi a) { return __builtin_convertvector(a, vf); }

MINISGL_INLINE vi load_u32(const uint8_t* p) {
  vi a;
  memcpy(&a, p, sizeof a);
  return a;
}
MINISGL_INLINE vi load_i8(const uint8_t* p) {
#if defined(__SSE4_1__)
  int32_t raw = 0;
  memcpy(&raw, p, sizeof raw);
  return reinterpret_cast<vi>(_mm_cvtepi8_epi32(_mm_cvtsi32_si128(raw)));
#else
  int8_t b[4];
  memcpy(b, p, sizeof b);
  return vi{b[0], b[1], b[2], b[3]};
#endif
}
MINISGL_INLINE vf load_bf16(const uint16_t* p) {
  return as_float(vi{p[0] << 16, p[1] << 16, p[2] << 16, p[3] << 16});
}
MINISGL_INLINE vf load_half(const uint16_t* p) {
  return vf{scalar_half_to_float(p[0]), scalar_half_to_float(p[1]), scalar_half_to_float(p[2]),
            scalar_half_to_float(p[3])};
}
MINISGL_INLINE void store_half(uint16_t* p, vf a) {
  for (int i = 0; i < kLanes; ++i) p[i] = scalar_float_to_half(a[i]);
}

#if defined(__SSSE3__)
// The values of all 4-bit formats are integers that fit a byte, which one shuffle finds.
struct Lookup {
  __m128i bytes;
};
MINISGL_INLINE Lookup load_lookup(const float* values) {
  int8_t bytes[16];
  for (int i = 0; i < 16; ++i) bytes[i] = static_cast<int8_t>(values[i]);
  return {_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes))};
}
template <int kShift>
MINISGL_INLINE vf lookup(const Lookup& table, vi codes) {
  // The code goes to the top byte of its lane; the other bytes ask for zeros.
  const __m128i raw = reinterpret_cast<__m128i>(codes);
  __m128i index = kShift < 24 ? _mm_slli_epi32(raw, 24 - (kShift < 24 ? kShift : 24))
                              : _mm_srli_epi32(raw, kShift < 24 ? 0 : kShift - 24);
  index = _mm_and_si128(index, _mm_set1_epi32(0x0f000000));
  index = _mm_or_si128(index, _mm_set1_epi32(0x00808080));
  const __m128i found = _mm_srai_epi32(_mm_shuffle_epi8(table.bytes, index), 24);
  return _mm_cvtepi32_ps(found);
}
#else
struct Lookup {
  const float* values;
};
MINISGL_INLINE Lookup load_lookup(const float* values) { return {values}; }
template <int kShift>
MINISGL_INLINE vf lookup(const Lookup& table, vi codes) {
  const vi index = (codes >> kShift) & set1i(15);
  return vf{table.values[index[0]], table.values[index[1]], table.values[index[2]],
            table.values[index[3]]};
}
#endif

MINISGL_INLINE float sum_lanes(vf a) { return (a[0] + a[2]) + (a[1] + a[3]); }
MINISGL_INLINE float max_lanes(vf a) {
  const float x = a[0] > a[2] ? a[0] : a[2];
  const float y = a[1] > a[3] ? a[1] : a[3];
  return x > y ? x : y;
}

MINISGL_INLINE void transpose(vf rows[kLanes]) {
  const vf a = rows[0];
  const vf b = rows[1];
  const vf c = rows[2];
  const vf d = rows[3];
  for (int i = 0; i < 4; ++i) rows[i] = vf{a[i], b[i], c[i], d[i]};
}

#endif

// To nearest, ties to even; a NaN becomes the quiet NaN 0x7fc0.
MINISGL_INLINE uint16_t float_to_bf16(float value) {
  uint32_t bits = 0;
  memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

MINISGL_INLINE vf load_as_float(const float* p) { return load(p); }

// e^x. Below -87.33 it is 0, above 88.37 infinity; else within 2 ulp (the Cephes polynomial).
MINISGL_INLINE vf exp(vf x) {
  const vf lowest = set1(-87.33654f);
  const vf highest = set1(88.37626f);
  const vf clamped = min(highest, max(lowest, x));
  // Adding 1.5 * 2^23 rounds to an integer, which then stands in the low bits.
  const vf magic = set1(12582912.0f);
  const vf shifted = fmadd(clamped, set1(1.44269504f), magic);
  const vf n = sub(shifted, magic);
  vf r = fmadd(n, set1(-0.693359375f), clamped);
  r = fmadd(n, set1(2.12194440e-4f), r);
  vf p = set1(1.9875691500e-4f);
  p = fmadd(p, r, set1(1.3981999507e-3f));
  p = fmadd(p, r, set1(8.3334519073e-3f));
  p = fmadd(p, r, set1(4.1665795894e-2f));
  p = fmadd(p, r, set1(1.6666665459e-1f));
  p = fmadd(p, r, set1(5.0000001201e-1f));
  p = add(fmadd(mul(r, r), p, r), set1(1.0f));
  const vf power = as_float(addi(shift_left<23>(as_int(shifted)), set1i(0x3f800000)));
  vf result = mul(p, power);
  result = select(less(x, lowest), zero(), result);
  return select(less(highest, x), set1(__builtin_inff()), result);
}

MINISGL_INLINE vf tanh(vf x) {
  const vf magnitude = abs(x);
  // 1 - 2 / (e^2|x| + 1), and near 0, where that cancels, an odd polynomial (Cephes).
  const vf e = exp(add(magnitude, magnitude));
  const vf big = sub(set1(1.0f), div(set1(2.0f), add(e, set1(1.0f))));
  const vf square = mul(x, x);
  vf p = set1(-5.70498872745e-3f);
  p = fmadd(p, square, set1(2.06390887954e-2f));
  p = fmadd(p, square, set1(-5.37397155531e-2f));
  p = fmadd(p, square, set1(1.33314422036e-1f));
  p = fmadd(p, square, set1(-3.33332819422e-1f));
  const vf small = fmadd(mul(p, square), x, x);
  const vf signed_big = select(less(x, zero()), sub(zero(), big), big);
  return select(less(magnitude, set1(0.625f)), small, signed_big);
}

}  // namespace
}  // namespace minisgl::cpu
