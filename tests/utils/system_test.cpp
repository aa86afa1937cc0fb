#include "utils/system.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>

namespace minisgl {
namespace {

namespace fs = std::filesystem;

// A made-up root folder with /proc and /sys files in it.
class SystemTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ =
        fs::path(testing::TempDir()) /
        (std::string("system_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    const fs::path file = root_ / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  CgroupLimits limits() const { return cgroup_limits(root_.string()); }

  fs::path root_;
};

TEST_F(SystemTest, FindsNoLimitsWhereThereAreNoGroups) {
  EXPECT_FALSE(limits().cores);
  EXPECT_FALSE(limits().memory_bytes);
}

TEST_F(SystemTest, TakesTheLowestLimitOfAllLevelsOfAUnifiedHierarchy) {
  write("proc/self/cgroup", "0::/a/b\n");
  write("sys/fs/cgroup/a/b/cpu.max", "400000 100000\n");
  write("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  write("sys/fs/cgroup/a/b/memory.max", "max\n");
  write("sys/fs/cgroup/a/memory.max", "1073741824\n");
  EXPECT_DOUBLE_EQ(limits().cores.value(), 1.5);
  EXPECT_EQ(limits().memory_bytes.value(), 1 << 30);
}

TEST_F(SystemTest, ReadsNoLimitFromAnUnlimitedGroup) {
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/memory.max", "max\n");
  EXPECT_FALSE(limits().cores);
  EXPECT_FALSE(limits().memory_bytes);
}

TEST_F(SystemTest, ReadsControllersOfTheOldHierarchy) {
  write("proc/self/cgroup", "4:cpu,cpuacct:/docker/x\n3:memory:/docker/x\n1:name=systemd:/\n");
  // Inside a container the group's folder is mounted as the root.
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "200000\n");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  write("sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes", "536870912\n");
  EXPECT_DOUBLE_EQ(limits().cores.value(), 2.0);
  EXPECT_EQ(limits().memory_bytes.value(), 512 << 20);
}

TEST_F(SystemTest, IgnoresANegativeQuotaAndNonsense) {
  write("proc/self/cgroup", "4:cpu:/x\nnonsense\n3:memory:/x\n");
  write("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n");
  write("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "lots\n");
  EXPECT_FALSE(limits().cores);
  EXPECT_FALSE(limits().memory_bytes);
}

TEST(System, CountsNoMoreCoresThanTheAffinityMaskAllows) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_GE(usable_cores(), 1);
  EXPECT_LE(usable_cores(), CPU_COUNT(&before));

  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_cores(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(System, ReportsMemoryThatTheMachineCouldHave) {
  EXPECT_GT(usable_memory_bytes(), int64_t{64} << 20);
  EXPECT_LT(usable_memory_bytes(), int64_t{1} << 50);
}

#if defined(__x86_64__)
TEST(System, AgreesWithTheCompilerAboutInstructionSets) {
  const CpuFeatures features = cpu_features();
  EXPECT_EQ(features.x86_64_v2, __builtin_cpu_supports("sse4.2") &&
                                    __builtin_cpu_supports("ssse3") &&
                                    __builtin_cpu_supports("popcnt"));
  EXPECT_EQ(features.avx2, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                               __builtin_cpu_supports("bmi2"));
  EXPECT_EQ(features.avx512,
            __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"));
  EXPECT_EQ(features.avx512_vnni, features.avx512 && __builtin_cpu_supports("avx512vnni"));
}
#endif

}  // namespace
}  // namespace minisgl
