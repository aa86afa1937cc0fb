#include "tensor/dims.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace minisgl {
namespace {

std::optional<int64_t> as_number(std::string_view name) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
  if (error != std::errc{} || end != name.data() + name.size()) return std::nullopt;
  return value;
}

}  // namespace

Dims& Dims::bind(std::string_view name, int64_t size) {
  MINISGL_CHECK(agree(name, size), "{}: {} is {} and cannot be {} too", operation_, name,
                (*this)[name], size);
  return *this;
}

Dims& Dims::match(std::string_view tensor, const TensorView& view, Names names) {
  if (view.rank() != static_cast<int>(names.size())) fail(tensor, view, names);
  int i = 0;
  for (const std::string_view name : names) {
    if (!agree(name, view.dim(i++))) fail(tensor, view, names);
  }
  return *this;
}

Dims& Dims::dtype(std::string_view tensor, const TensorView& view, DType expected) {
  if (view.dtype() != expected) {
    throw_error(ErrorKind::kInternal, "{}: {} is {}, expected {}", operation_, tensor,
                view.describe(), dtype_name(expected));
  }
  return *this;
}

int64_t Dims::operator[](std::string_view name) const {
  const int64_t* size = find(name);
  MINISGL_CHECK(size != nullptr, "{}: no tensor had a dimension {}", operation_, name);
  return *size;
}

const int64_t* Dims::find(std::string_view name) const {
  for (int i = 0; i < num_known_; ++i) {
    const Known& known = known_[static_cast<size_t>(i)];
    if (known.name == name) return &known.size;
  }
  return nullptr;
}

bool Dims::agree(std::string_view name, int64_t size) {
  if (name == "_") return true;
  if (const std::optional<int64_t> number = as_number(name)) return size == *number;
  if (const int64_t* known = find(name)) return size == *known;
  MINISGL_CHECK(num_known_ < kMaxNames, "{}: more than {} names", operation_, kMaxNames);
  known_[static_cast<size_t>(num_known_++)] = {name, size};
  return true;
}

void Dims::fail(std::string_view tensor, const TensorView& view, Names names) const {
  std::string sizes;
  for (auto name = names.begin(); name != names.end(); ++name) {
    const int64_t* known = find(*name);
    if (known == nullptr || std::find(names.begin(), name, *name) != name) continue;
    sizes += fmt::format("{}{}={}", sizes.empty() ? " with " : ", ", *name, *known);
  }
  throw_error(ErrorKind::kInternal, "{}: {} is [{}], expected [{}]{}", operation_, tensor,
              fmt::join(view.shape(), ", "), fmt::join(names, ", "), sizes);
}

}  // namespace minisgl
