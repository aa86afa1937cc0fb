#pragma once

namespace minisgl {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace minisgl
