#include "utils/mmap.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "utils/error.h"
#include "utils/files.h"

namespace minisgl {
namespace {

class MappedFileTest : public testing::Test {
 protected:
  std::string path_ = testing::TempDir() + "/mmap_test.bin";

  std::string write(size_t bytes) {
    std::string content(bytes, '\0');
    for (size_t i = 0; i < bytes; ++i) content[i] = static_cast<char>(i * 7);
    write_file(path_, content);
    return content;
  }
  static std::string text(const MappedFile& file) {
    return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
  }
};

TEST_F(MappedFileTest, ShowsTheFilesBytes) {
  const std::string content = write(10000);
  const MappedFile file(path_);
  EXPECT_EQ(text(file), content);
  EXPECT_EQ(file.path(), path_);
}

TEST_F(MappedFileTest, StaysGoodWhenTheFileIsDeleted) {
  const std::string content = write(5000);
  const MappedFile file(path_);
  std::filesystem::remove(path_);
  EXPECT_EQ(text(file), content);
}

TEST_F(MappedFileTest, AnEmptyFileHasNoBytes) {
  write(0);
  EXPECT_TRUE(MappedFile(path_).bytes().empty());
}

TEST_F(MappedFileTest, MovingHandsTheMappingOver) {
  const std::string content = write(100);
  MappedFile first(path_);
  MappedFile second(std::move(first));
  EXPECT_EQ(text(second), content);
  write(50);
  MappedFile third(path_);
  third = std::move(second);
  EXPECT_EQ(text(third), content);
}

TEST_F(MappedFileTest, ReleasedPagesReadTheSameAgain) {
  const std::string content = write(100000);
  const MappedFile file(path_);
  EXPECT_EQ(text(file), content);
  file.release(file.bytes().subspan(1, 70000));
  file.release({});
  EXPECT_EQ(text(file), content);
}

TEST_F(MappedFileTest, RefusesFoldersAndMissingFiles) {
  const auto kind_of = [](const std::string& path) {
    try {
      MappedFile file(path);
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::kInternal;
  };
  EXPECT_EQ(kind_of(path_ + ".missing"), ErrorKind::kNotFound);
  EXPECT_EQ(kind_of(testing::TempDir()), ErrorKind::kInvalidArgument);
}

}  // namespace
}  // namespace minisgl
