#include "utils/progress.h"

#include <gtest/gtest.h>

#include <memory>

#include "utils/files.h"

namespace minisgl {
namespace {

TEST(FormatBytes, KeepsThreeDigits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1000), "1.00 kB");
  EXPECT_EQ(format_bytes(999'499), "999 kB");
  EXPECT_EQ(format_bytes(999'500), "1.00 MB");
  EXPECT_EQ(format_bytes(2'460'000'000), "2.46 GB");
  EXPECT_EQ(format_bytes(UINT64_MAX), "18.4 EB");
}

TEST(ProgressLine, SaysWhatIsKnown) {
  EXPECT_EQ(progress_line("m", 500, 1000, 100, 0),
            "m  50% [##########          ] 500 B of 1.00 kB, 100 B/s, 0:05 left");
  EXPECT_EQ(progress_line("m", 500, 0, 0, 0), "m 500 B");
  EXPECT_EQ(progress_line("m", 2000, 1000, 0, 0),
            "m 100% [####################] 2.00 kB of 1.00 kB");
  EXPECT_TRUE(progress_line("m", 0, 1'000'000'000, 10'000, 0).ends_with(", 27:46:40 left"));
}

TEST(ProgressLine, FitsTheTerminal) { EXPECT_EQ(progress_line("label", 1, 2, 0, 5), "label"); }

TEST(ProgressBar, WritesFewPlainLinesWhereThereIsNoTerminal) {
  const std::string path = testing::TempDir() + "progress_test_out";
  {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> out(std::fopen(path.c_str(), "wb"),
                                                              std::fclose);
    ProgressBar bar(out.get());
    for (int i = 0; i <= 1000; ++i) bar.update("m", static_cast<uint64_t>(i), 1000);
    bar.message("note");
    bar.finish();
    bar.finish();
  }
  EXPECT_EQ(read_file(path),
            "m   0% [                    ] 0 B of 1.00 kB\nnote\n"
            "m 100% [####################] 1.00 kB of 1.00 kB\n");
}

}  // namespace
}  // namespace minisgl
