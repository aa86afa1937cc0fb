// Where a tensor's memory lies.
#pragma once

#include <cstdint>
#include <string>

namespace minisgl {

struct Device {
  enum class Type : uint8_t { kCpu, kCuda };
  Type type = Type::kCpu;
  int index = 0;  // of the GPU; 0 on the CPU

  static constexpr Device cpu() { return {}; }
  static constexpr Device cuda(int index) { return {Type::kCuda, index}; }
  bool is_cpu() const { return type == Type::kCpu; }
  bool operator==(const Device&) const = default;
};

// "cpu", "cuda:0"
std::string device_name(Device device);

}  // namespace minisgl
