// Encoding speed on one thread: tokenizer MODEL TEXT [REPEATS]
// TEXT is cut into documents of 64 KiB (at the next line end), as tokenizer_peer.py does. Prints
// one JSON object: seconds of each repeat, and a checksum of the ids for comparing with a peer.
#include "tokenizer/tokenizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "utils/files.h"

namespace {

std::vector<std::string_view> documents(std::string_view text) {
  constexpr size_t kDocumentBytes = 64 << 10;
  std::vector<std::string_view> found;
  while (!text.empty()) {
    const size_t line_end = text.find('\n', kDocumentBytes);
    const size_t size = line_end == std::string_view::npos ? text.size() : line_end + 1;
    found.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return found;
}

int run(const std::string& model, const std::string& text_path, int repeats) {
  const auto tokenizer = minisgl::load_tokenizer(model);
  const std::string text = minisgl::read_file(text_path);
  std::vector<double> seconds;
  uint64_t checksum = 0, tokens = 0;
  for (int i = 0; i < repeats; ++i) {
    checksum = tokens = 0;
    const auto start = std::chrono::steady_clock::now();
    for (const std::string_view document : documents(text)) {
      for (const int32_t id : tokenizer->encode(document, {.add_special = false})) {
        checksum = checksum * 31 + static_cast<uint64_t>(id);
        ++tokens;
      }
    }
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  fmt::print(
      "{{\"bytes\": {}, \"tokens\": {}, \"checksum\": \"{:016x}\", \"seconds\": [{:.4f}]}}\n",
      text.size(), tokens, checksum, fmt::join(seconds, ", "));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: {} MODEL TEXT [REPEATS]\n", argv[0]);
    return 2;
  }
  try {
    return run(argv[1], argv[2], argc > 3 ? std::atoi(argv[3]) : 5);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
