#include "utils/digest.h"

#include <openssl/evp.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "utils/error.h"

namespace minisgl {

struct Digest::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { EVP_MD_CTX_free(context); }
};

Digest::Digest(DigestKind kind) : state_(std::make_unique<State>()) {
  const EVP_MD* algorithm = kind == DigestKind::kSha256 ? EVP_sha256() : EVP_sha1();
  if (!state_->context || EVP_DigestInit_ex(state_->context, algorithm, nullptr) != 1) {
    throw_error(ErrorKind::kResource, "OpenSSL has no {}; is it restricted by its configuration?",
                kind == DigestKind::kSha256 ? "SHA-256" : "SHA-1");
  }
}

Digest::~Digest() = default;
Digest::Digest(Digest&&) noexcept = default;
Digest& Digest::operator=(Digest&&) noexcept = default;

void Digest::update(std::string_view bytes) {
  MINISGL_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

std::string Digest::finish_hex() {
  unsigned char raw[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  MINISGL_CHECK(EVP_DigestFinal_ex(state_->context, raw, &size) == 1);
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) hex += fmt::format("{:02x}", raw[i]);
  return hex;
}

std::string sha256_of_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             std::fclose);
  if (!file) {
    throw_error(errno == ENOENT ? ErrorKind::kNotFound : ErrorKind::kResource,
                "{}: cannot open: {}", path, std::strerror(errno));
  }
  Digest digest(DigestKind::kSha256);
  char buffer[1 << 16];
  size_t n = 0;
  while ((n = std::fread(buffer, 1, sizeof buffer, file.get())) > 0) digest.update({buffer, n});
  if (std::ferror(file.get())) {
    throw_error(ErrorKind::kResource, "{}: read failed: {}", path, std::strerror(errno));
  }
  return digest.finish_hex();
}

}  // namespace minisgl
