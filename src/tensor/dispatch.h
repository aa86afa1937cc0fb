// Run-time values become template arguments once, at a room's edge; inside there is no
// `if (dtype)`. What is not in the list is an error that shows the list, never a fall-through.
//   dispatch_float(x.dtype(), "rms_norm", [&]<class T>() { rms_norm(y.data<T>(), …); });
#pragma once

#include <fmt/ranges.h>

#include <array>
#include <string_view>
#include <utility>

#include "tensor/tensor.h"

namespace minisgl {

// Calls f.operator()<T>() with T float, Half or BFloat16; gives back what it returns.
template <class F>
decltype(auto) dispatch_float(DType dtype, std::string_view operation, F&& f) {
  switch (dtype) {
    case DType::kFloat32:
      return std::forward<F>(f).template operator()<float>();
    case DType::kFloat16:
      return std::forward<F>(f).template operator()<Half>();
    case DType::kBFloat16:
      return std::forward<F>(f).template operator()<BFloat16>();
    default:
      throw_error(ErrorKind::kUnsupported,
                  "{}: {} is not supported; float32, float16, bfloat16 are", operation,
                  dtype_name(dtype));
  }
}

// Calls f.operator()<true>() or f.operator()<false>().
template <class F>
decltype(auto) dispatch_bool(bool value, F&& f) {
  return value ? std::forward<F>(f).template operator()<true>()
               : std::forward<F>(f).template operator()<false>();
}

namespace detail {
template <int First, int... Rest, class F, class Refuse>
decltype(auto) dispatch_int(int64_t value, F&& f, const Refuse& refuse) {
  if (value == First) return std::forward<F>(f).template operator()<First>();
  if constexpr (sizeof...(Rest) > 0) {
    return dispatch_int<Rest...>(value, std::forward<F>(f), refuse);
  } else {
    refuse();
  }
}

// Throws; a type so that it can be the last, never returning, branch of any return type.
struct RefuseInt {
  std::string_view operation;
  std::string_view what;
  int64_t value;
  std::span<const int> supported;
  [[noreturn]] void operator()() const {
    throw_error(ErrorKind::kUnsupported, "{}: {} {} is not supported; {} are", operation, what,
                value, fmt::join(supported, ", "));
  }
};
}  // namespace detail

// Calls f.operator()<N>() for the N among Values that equals `value`.
template <int... Values, class F>
decltype(auto) dispatch_int(int64_t value, std::string_view what, std::string_view operation,
                            F&& f) {
  static constexpr std::array<int, sizeof...(Values)> kSupported{Values...};
  return detail::dispatch_int<Values...>(value, std::forward<F>(f),
                                         detail::RefuseInt{operation, what, value, kSupported});
}

// The head dimensions that fixed-size attention kernels are built for.
template <class F>
decltype(auto) dispatch_head_dim(int64_t head_dim, std::string_view operation, F&& f) {
  return dispatch_int<32, 64, 80, 96, 128, 192, 256>(head_dim, "head_dim", operation,
                                                     std::forward<F>(f));
}

}  // namespace minisgl
