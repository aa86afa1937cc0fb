// Any bytes are a GGUF file or an Error; then every accessor and every tensor byte can be read.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "utils/error.h"
#include "utils/gguf.h"

namespace {

void read_everything(const minisgl::GgufFile& file) {
  for (const auto& [key, value] : file.metadata()) {
    try {
      switch (value.type) {
        case minisgl::GgufType::kString:
          (void)file.string(key);
          break;
        case minisgl::GgufType::kArray:
          (void)file.strings(key);
          break;
        default:
          (void)file.number(key);
      }
    } catch (const minisgl::Error&) {
    }
    try {
      (void)file.numbers(key);
    } catch (const minisgl::Error&) {
    }
  }
  unsigned sum = 0;
  for (const minisgl::GgufTensor& tensor : file.tensors()) {
    for (const std::byte b : tensor.data) sum += std::to_integer<unsigned>(b);
  }
  volatile unsigned sink = sum;
  (void)sink;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    read_everything(minisgl::GgufFile::parse(std::as_bytes(std::span(data, size)), "fuzz"));
  } catch (const minisgl::Error&) {
  }
  return 0;
}
