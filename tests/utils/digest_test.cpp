#include "utils/digest.h"

#include <gtest/gtest.h>

#include "utils/error.h"
#include "utils/files.h"

namespace minisgl {
namespace {

TEST(Digest, OfPiecesIsThatOfTheWhole) {
  Digest sha256(DigestKind::kSha256);
  sha256.update("a");
  sha256.update("");
  sha256.update("bc");
  EXPECT_EQ(sha256.finish_hex(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Digest sha1(DigestKind::kSha1);
  sha1.update("abc");
  EXPECT_EQ(sha1.finish_hex(), "a9993e364706816aba3e25717850c26c9cd0d89d");
}

TEST(Digest, OfAFile) {
  const std::string path = testing::TempDir() + "digest_test_file";
  write_file(path, "abc");
  EXPECT_EQ(sha256_of_file(path),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_THROW(sha256_of_file(path + ".none"), Error);
}

}  // namespace
}  // namespace minisgl
