#include <gtest/gtest.h>

#include <string>

#include "base/file.h"
#include "base/process.h"

namespace paceline::base {
namespace {

namespace fs = std::filesystem;

class Cgroup : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ =
        fs::path(::testing::TempDir()) /
        ("paceline_cgroup_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(root_);
  }
  void TearDown() override { fs::remove_all(root_); }
  void file(const std::string& path, const std::string& text) { write_file(root_ / path, text); }
  fs::path root_;
};

TEST_F(Cgroup, WithoutAnyFileThereIsNoLimit) {
  const auto limits = cgroup_limits(root_);
  EXPECT_FALSE(limits.memory_bytes || limits.memory_available_bytes || limits.cpus || limits.threads);
}

TEST_F(Cgroup, CountsWhatTheKernelEndedForMemory) {
  EXPECT_FALSE(out_of_memory_kills(root_).has_value()) << "nobody counts";
  file("proc/vmstat", "nr_free_pages 12\noom_kill 7\n");
  EXPECT_EQ(out_of_memory_kills(root_), 7) << "the system";
  file("proc/self/cgroup", "4:memory:/a/b\n");
  file("sys/fs/cgroup/memory/a/b/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
  EXPECT_EQ(out_of_memory_kills(root_), 2) << "version one";
  file("proc/self/cgroup", "0::/slice/job\n");
  file("sys/fs/cgroup/memory.events", "oom 9\noom_kill 9\n");
  EXPECT_EQ(out_of_memory_kills(root_), 9) << "a container sees its own group as the root";
  file("sys/fs/cgroup/slice/job/memory.events", "low 0\nmax 40\noom 3\noom_kill 1\noom_group_kill 0\n");
  EXPECT_EQ(out_of_memory_kills(root_), 1);
}

TEST_F(Cgroup, VersionTwoTakesTheTightestLimitOnTheWayUp) {
  file("proc/self/cgroup", "0::/slice/job\n");
  file("sys/fs/cgroup/slice/job/memory.max", "max\n");
  file("sys/fs/cgroup/slice/job/cpu.max", "150000 100000\n");
  file("sys/fs/cgroup/slice/memory.max", "8000000000\n");
  file("sys/fs/cgroup/slice/memory.current", "5000000000\n");
  file("sys/fs/cgroup/slice/memory.stat", "anon 1\ninactive_file 2000000000\nfile 9\n");
  file("sys/fs/cgroup/slice/cpu.max", "max 100000\n");
  file("sys/fs/cgroup/slice/job/pids.max", "max\n");
  file("sys/fs/cgroup/slice/pids.max", "200\n");
  const auto limits = cgroup_limits(root_);
  EXPECT_EQ(limits.memory_bytes, 8000000000);
  EXPECT_EQ(limits.memory_available_bytes, 5000000000);  // the inactive page cache is given back on demand
  EXPECT_EQ(limits.cpus, 1.5);
  EXPECT_EQ(limits.threads, 200);
}

TEST_F(Cgroup, VersionOneHasAPathForEachController) {
  file("proc/self/cgroup", "9:name=systemd:/\n4:memory:/box/a\n2:pids:/c\n1:cpu,cpuacct:/b\n0::/\n");
  file("sys/fs/cgroup/memory/box/a/memory.limit_in_bytes", "4000000000\n");
  file("sys/fs/cgroup/memory/box/a/memory.usage_in_bytes", "1000000000\n");
  file("sys/fs/cgroup/memory/box/a/memory.stat", "total_inactive_file 0\n");
  file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");  // "no limit"
  file("sys/fs/cgroup/pids/c/pids.max", "64\n");
  file("sys/fs/cgroup/cpu/b/cpu.cfs_quota_us", "200000\n");
  file("sys/fs/cgroup/cpu/b/cpu.cfs_period_us", "100000\n");
  file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  file("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  const auto limits = cgroup_limits(root_);
  EXPECT_EQ(limits.memory_bytes, 4000000000);
  EXPECT_EQ(limits.memory_available_bytes, 3000000000);
  EXPECT_EQ(limits.cpus, 2.0);
  EXPECT_EQ(limits.threads, 64);
}

TEST_F(Cgroup, PathThatIsNotVisibleInAContainerFallsBackToWhatIs) {
  file("proc/self/cgroup", "0::/../../outside/box\n");
  file("sys/fs/cgroup/memory.max", "1000000\n");
  EXPECT_EQ(cgroup_limits(root_).memory_bytes, 1000000);
}

TEST_F(Cgroup, GroupOverItsLimitHasNothingLeftRatherThanLessThanNothing) {
  file("proc/self/cgroup", "0::/\n");
  file("sys/fs/cgroup/memory.max", "100\n");
  file("sys/fs/cgroup/memory.current", "150\n");
  EXPECT_EQ(cgroup_limits(root_).memory_available_bytes, 0);
}

}  // namespace
}  // namespace paceline::base
