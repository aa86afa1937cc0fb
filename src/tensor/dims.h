// Shapes checked by name where a tensor enters a room, so that the message writes itself:
//   Dims("store_kv").match("k", k, {"T", "Hkv", "D"}).match("v", v, {"T", "Hkv", "D"});
//   store_kv: v is [7, 2, 128], expected [T, Hkv, D] with T=7, Hkv=8, D=128
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "tensor/tensor.h"

namespace minisgl {

// Learns each name's size where it first appears and holds later ones to it. A name made of digits
// ("3") stands for itself, "_" for any size. Allocates only to report a mismatch, so it may stay in
// the hot loop. All names are looked at, not copied: string literals are meant. One thread.
// A wrong shape inside the engine is our own mistake: errors are kInternal.
class Dims {
 public:
  static constexpr int kMaxNames = 16;
  using Names = std::initializer_list<std::string_view>;

  explicit Dims(std::string_view operation) : operation_(operation) {}

  // A size that is known before any tensor is seen, e.g. from the model's config.
  Dims& bind(std::string_view name, int64_t size);
  // Rank and every named size agree, or an Error as above.
  Dims& match(std::string_view tensor, const TensorView& view, Names names);
  // The element type agrees.
  Dims& dtype(std::string_view tensor, const TensorView& view, DType expected);

  // The size learnt for a name; an internal error if no tensor had it.
  int64_t operator[](std::string_view name) const;

 private:
  struct Known {
    std::string_view name;
    int64_t size;
  };

  const int64_t* find(std::string_view name) const;
  bool agree(std::string_view name, int64_t size);
  [[noreturn]] void fail(std::string_view tensor, const TensorView& view, Names names) const;

  std::string_view operation_;
  std::array<Known, kMaxNames> known_{};
  int num_known_ = 0;
};

}  // namespace minisgl
