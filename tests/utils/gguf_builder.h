// Writes GGUF files for tests, wrong ones too: every field is what the test says.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "utils/gguf.h"

namespace minisgl::testing {

class GgufBuilder {
 public:
  struct Tensor {
    std::string name;
    std::vector<uint64_t> dims;  // innermost first
    uint32_t type;
    uint64_t offset;
  };

  std::string magic = "GGUF";
  uint32_t version = 3;
  std::vector<Tensor> tensors;
  std::string data;  // the data section
  uint64_t alignment = 32;
  int64_t extra_tensors = 0;  // added to the counts that the header states
  int64_t extra_keys = 0;

  template <class T>
  static std::string raw(T value) {
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
  }
  static std::string text(std::string_view value) {
    return raw(uint64_t{value.size()}) + std::string(value);
  }

  // A key with its value's bytes as they are.
  GgufBuilder& key(std::string_view name, GgufType type, const std::string& value) {
    keys_ += text(name) + raw(static_cast<uint32_t>(type)) + value;
    ++num_keys_;
    return *this;
  }
  GgufBuilder& string(std::string_view name, std::string_view value) {
    return key(name, GgufType::kString, text(value));
  }
  GgufBuilder& u32(std::string_view name, uint32_t value) {
    return key(name, GgufType::kUInt32, raw(value));
  }
  GgufBuilder& f32(std::string_view name, float value) {
    return key(name, GgufType::kFloat32, raw(value));
  }
  GgufBuilder& array(std::string_view name, GgufType element, uint64_t size,
                     const std::string& elements) {
    return key(name, GgufType::kArray, raw(static_cast<uint32_t>(element)) + raw(size) + elements);
  }

  // A float32 tensor after those before it.
  GgufBuilder& floats(std::string_view name, std::vector<uint64_t> dims,
                      std::span<const float> values) {
    return tensor(name, std::move(dims), 0,
                  {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  }
  GgufBuilder& tensor(std::string_view name, std::vector<uint64_t> dims, uint32_t type,
                      std::string_view bytes) {
    data.resize((data.size() + alignment - 1) / alignment * alignment);
    tensors.push_back({std::string(name), std::move(dims), type, data.size()});
    data += bytes;
    return *this;
  }

  std::string header() const {
    std::string out = magic + raw(version) + raw(uint64_t{tensors.size() + extra_tensors}) +
                      raw(uint64_t{num_keys_ + extra_keys}) + keys_;
    for (const Tensor& tensor : tensors) {
      out += text(tensor.name) + raw(static_cast<uint32_t>(tensor.dims.size()));
      for (const uint64_t dim : tensor.dims) out += raw(dim);
      out += raw(tensor.type) + raw(tensor.offset);
    }
    return out;
  }
  std::string build() const {
    std::string out = header();
    out.resize((out.size() + alignment - 1) / alignment * alignment);
    return out + data;
  }

 private:
  std::string keys_;
  uint64_t num_keys_ = 0;
};

}  // namespace minisgl::testing
