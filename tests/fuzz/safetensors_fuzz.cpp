// Any bytes are a safetensors file or an Error; then every tensor byte can be read.
#include <cstddef>
#include <cstdint>
#include <span>

#include "loader/safetensors.h"
#include "utils/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto file = minisgl::SafetensorsFile::parse(std::as_bytes(std::span(data, size)), "fuzz");
    unsigned sum = 0;
    for (const minisgl::SafetensorsTensor& tensor : file.tensors()) {
      for (const std::byte b : tensor.data) sum += std::to_integer<unsigned>(b);
    }
    volatile unsigned sink = sum;
    (void)sink;
  } catch (const minisgl::Error&) {
  }
  return 0;
}
