#include "utils/quote.h"

#include <fmt/format.h>

namespace minisgl {

std::string quote(std::string_view name) {
  constexpr size_t kMaxShown = 100;
  std::string out = "'";
  for (const char c : name.substr(0, kMaxShown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out + (name.size() > kMaxShown ? "...'" : "'");
}

}  // namespace minisgl
