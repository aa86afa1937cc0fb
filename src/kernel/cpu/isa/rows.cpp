// Kernels that treat each row by itself. Sums run over the lanes of four vectors in a fixed order,
// which depends on the row's length only; bodies and tails use the same arithmetic.
#include "kernel/cpu/isa/isa.h"

namespace minisgl::cpu::MINISGL_ISA {
namespace {

// Calls body(offset, count) for whole vectors and then for what is left of [0, n).
template <class Body>
MINISGL_INLINE void for_each_vector(int64_t n, Body body) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) body(i, int64_t{kLanes});
  if (i < n) body(i, n - i);
}
MINISGL_INLINE vf load_up_to(const float* p, int64_t count) {
  return count == kLanes ? load(p) : load_n(p, count);
}
MINISGL_INLINE void store_up_to(float* p, vf a, int64_t count) {
  if (count == kLanes) {
    store(p, a);
  } else {
    store_n(p, a, count);
  }
}

MINISGL_INLINE float sum_of_squares(const float* x, int64_t n) {
  vf sums[4] = {zero(), zero(), zero(), zero()};
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (int j = 0; j < 4; ++j) {
      const vf a = load(x + i + j * kLanes);
      sums[j] = fmadd(a, a, sums[j]);
    }
  }
  for (int j = 0; i < n; i += kLanes, ++j) {
    const vf a = load_up_to(x + i, n - i < kLanes ? n - i : kLanes);
    sums[j] = fmadd(a, a, sums[j]);
  }
  return sum_lanes(vf(cpu::add(cpu::add(sums[0], sums[1]), cpu::add(sums[2], sums[3]))));
}

MINISGL_INLINE void normalise(float* y, const float* x, const float* w, int64_t n, float eps) {
  const float mean = sum_of_squares(x, n) / static_cast<float>(n);
  const vf scale = set1(1.0f / __builtin_sqrtf(mean + eps));
  for_each_vector(n, [&](int64_t i, int64_t count) {
    const vf a = mul(load_up_to(x + i, count), scale);
    store_up_to(y + i, mul(load_up_to(w + i, count), a), count);
  });
}

}  // namespace

void rms_norm(float* y, const float* x, const float* w, int64_t n, float eps) {
  normalise(y, x, w, n, eps);
}

void add_rms_norm(float* y, float* x, const float* addend, const float* w, int64_t n, float eps) {
  add(x, addend, n);
  normalise(y, x, w, n, eps);
}

void add(float* x, const float* addend, int64_t n) {
  for_each_vector(n, [&](int64_t i, int64_t count) {
    store_up_to(x + i, cpu::add(load_up_to(x + i, count), load_up_to(addend + i, count)), count);
  });
}

void add_scaled(float* y, const float* x, float factor, int64_t n) {
  const vf f = set1(factor);
  for_each_vector(n, [&](int64_t i, int64_t count) {
    store_up_to(y + i, fmadd(f, load_up_to(x + i, count), load_up_to(y + i, count)), count);
  });
}

void rope(float* head, const float* cosines, const float* sines, int64_t half) {
  for_each_vector(half, [&](int64_t i, int64_t count) {
    const vf a = load_up_to(head + i, count);
    const vf b = load_up_to(head + half + i, count);
    const vf c = load_up_to(cosines + i, count);
    const vf s = load_up_to(sines + i, count);
    store_up_to(head + i, sub(mul(a, c), mul(b, s)), count);
    store_up_to(head + half + i, cpu::add(mul(b, c), mul(a, s)), count);
  });
}

void silu_mul(float* y, const float* gate, const float* up, int64_t n) {
  for_each_vector(n, [&](int64_t i, int64_t count) {
    const vf z = load_up_to(gate + i, count);
    const vf silu = div(z, cpu::add(set1(1.0f), exp(sub(zero(), z))));
    store_up_to(y + i, mul(silu, load_up_to(up + i, count)), count);
  });
}

// gelu_tanh(z) = 0.5 z (1 + tanh(a)) = z / (1 + exp(-2 a)), a = sqrt(2 / pi) (z + 0.044715 z^3)
void gelu_mul(float* y, const float* gate, const float* up, int64_t n) {
  for_each_vector(n, [&](int64_t i, int64_t count) {
    const vf z = load_up_to(gate + i, count);
    const vf cube = mul(mul(z, z), z);
    const vf minus_2a = mul(set1(-2.0f * 0.7978845608f), fmadd(set1(0.044715f), cube, z));
    const vf gelu = div(z, cpu::add(set1(1.0f), exp(minus_2a)));
    store_up_to(y + i, mul(gelu, load_up_to(up + i, count)), count);
  });
}

void softcap(float* x, float cap, int64_t n) {
  const vf c = set1(cap);
  for_each_vector(n, [&](int64_t i, int64_t count) {
    store_up_to(x + i, mul(c, tanh(div(load_up_to(x + i, count), c))), count);
  });
}

void exp_shifted(float* y, const float* x, float shift, int64_t n) {
  const vf s = set1(shift);
  for_each_vector(n, [&](int64_t i, int64_t count) {
    store_up_to(y + i, exp(sub(load_up_to(x + i, count), s)), count);
  });
}

void to_bf16(uint16_t* y, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = float_to_bf16(x[i]);
}

void to_half(uint16_t* y, const float* x, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store_half(y + i, load(x + i));
  if (i < n) {
    uint16_t rest[kLanes];
    store_half(rest, load_n(x + i, n - i));
    memcpy(y + i, rest, static_cast<size_t>(n - i) * sizeof(uint16_t));
  }
}

int64_t argmax(const float* x, int64_t n) {
  // The largest value first, then where it stands first: both loops are free of dependencies.
  vf best = set1(-__builtin_inff());
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) best = max(load(x + i), best);
  float top = max_lanes(best);
  for (; i < n; ++i) top = x[i] > top ? x[i] : top;
  for (i = 0; i < n; ++i) {
    if (x[i] == top) return i;
  }
  return 0;  // nothing but NaN
}

}  // namespace minisgl::cpu::MINISGL_ISA
