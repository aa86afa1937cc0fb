// A tokenizer.json, a zero byte, a text: loads the one and encodes the other, both ways.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tokenizer/detokenizer.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"
#include "utils/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(input.find('\0'), size);
  const std::string_view text = input.substr(std::min(size, end + 1)).substr(0, 256);
  try {
    const auto tokenizer = minisgl::make_json_tokenizer(input.substr(0, end), "", "input");
    const std::vector<int32_t> ids = tokenizer->encode(text);
    tokenizer->encode(text, {.add_special = false, .parse_special = false});
    const std::string decoded = tokenizer->decode(ids, {.skip_special = false});
    minisgl::Detokenizer detokenizer(*tokenizer, {.skip_special = false, .stop = {"\n\n"}});
    for (const int32_t id : ids) {
      if (!minisgl::is_valid_utf8(detokenizer.push(id))) std::abort();
    }
    if (!minisgl::is_valid_utf8(decoded)) std::abort();
  } catch (const minisgl::Error& error) {
    if (error.kind() == minisgl::ErrorKind::kInternal) throw;
  }
  return 0;
}
