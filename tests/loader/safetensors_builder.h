// Writes safetensors files for tests, wrong ones too.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace minisgl::testing {

class SafetensorsBuilder {
 public:
  SafetensorsBuilder& add(std::string_view name, std::string_view dtype,
                          const std::vector<int64_t>& shape, std::string_view bytes) {
    const std::string dims = fmt::format("{}", fmt::join(shape, ","));
    entry(fmt::format(R"("{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", name, dtype,
                      dims, data.size(), data.size() + bytes.size()));
    data += bytes;
    return *this;
  }
  SafetensorsBuilder& floats(std::string_view name, const std::vector<int64_t>& shape,
                             std::span<const float> values) {
    return add(name, "F32", shape,
               {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  }
  // A member of the header as it is.
  SafetensorsBuilder& entry(const std::string& json) {
    entries_ += (entries_.empty() ? "" : ",") + json;
    return *this;
  }

  std::string build() const { return with_header("{" + entries_ + "}", data); }

  static std::string with_header(const std::string& header, const std::string& data) {
    const uint64_t size = header.size();
    std::string out(sizeof size, '\0');
    std::memcpy(out.data(), &size, sizeof size);
    return out + header + data;
  }

  std::string data;

 private:
  std::string entries_;
};

}  // namespace minisgl::testing
