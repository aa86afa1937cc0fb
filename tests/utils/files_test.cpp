#include "utils/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "utils/error.h"

namespace minisgl {
namespace {

class FilesTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = testing::TempDir() + "/files_test";
    std::filesystem::remove_all(dir_);
    std::filesystem::create_directories(dir_);
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  ErrorKind kind_of_reading(const std::string& path, size_t max_bytes = 1000) {
    try {
      read_file(path, max_bytes);
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(path));
      return error.kind();
    }
    ADD_FAILURE() << "no error for " << path;
    return ErrorKind::kInternal;
  }

  std::string dir_;
};

TEST_F(FilesTest, ReadsBackWhatWasWritten) {
  const std::string content("a\0b\r\n\xff", 6);
  write_file(dir_ + "/a", content);
  EXPECT_EQ(read_file(dir_ + "/a"), content);
  write_file(dir_ + "/a", "");
  EXPECT_EQ(read_file(dir_ + "/a"), "");
}

TEST_F(FilesTest, LeavesNoTemporaryFileBeside) {
  write_file(dir_ + "/a", "x");
  int entries = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir_)) {
    EXPECT_EQ(entry.path().filename(), "a");
    ++entries;
  }
  EXPECT_EQ(entries, 1);
}

TEST_F(FilesTest, SaysWhatIsWrongWithAPath) {
  EXPECT_EQ(kind_of_reading(dir_ + "/missing"), ErrorKind::kNotFound);
  EXPECT_EQ(kind_of_reading(dir_), ErrorKind::kInvalidArgument);
  write_file(dir_ + "/big", std::string(1001, 'x'));
  EXPECT_EQ(kind_of_reading(dir_ + "/big", 1000), ErrorKind::kResource);
  EXPECT_EQ(read_file(dir_ + "/big", 1001).size(), 1001u);
}

TEST_F(FilesTest, FileExistsIsNoErrorForOddPaths) {
  write_file(dir_ + "/a", "x");
  EXPECT_TRUE(file_exists(dir_ + "/a"));
  EXPECT_FALSE(file_exists(dir_ + "/b"));
  EXPECT_FALSE(file_exists(dir_ + "/a/b"));
  EXPECT_FALSE(file_exists(""));
}

}  // namespace
}  // namespace minisgl
