// SHA-256 and SHA-1 of bytes that arrive in pieces.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace minisgl {

enum class DigestKind { kSha256, kSha1 };

// Move-only. Thread: one at a time.
class Digest {
 public:
  explicit Digest(DigestKind kind);
  ~Digest();
  Digest(Digest&&) noexcept;
  Digest& operator=(Digest&&) noexcept;

  void update(std::string_view bytes);
  // Lower-case hex of all bytes so far; nothing may be added afterwards.
  std::string finish_hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The SHA-256 of a whole file, as lower-case hex. Errors: kNotFound, kResource.
std::string sha256_of_file(const std::string& path);

}  // namespace minisgl
