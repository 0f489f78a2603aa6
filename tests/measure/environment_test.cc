#include "measure/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>

#include "base/buffer.h"

namespace paceline::measure {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Environment, NamesTheMachineTheBuildAndTheCallersLibraries) {
  const Environment e = environment({"onednn 9.9"});
  EXPECT_FALSE(e.host.empty());
  EXPECT_FALSE(e.cpu.empty());
  EXPECT_GE(e.cores, 1);
  EXPECT_LE(e.cores, ::sysconf(_SC_NPROCESSORS_CONF));
  EXPECT_GT(e.memory_bytes, 64 << 20);
  EXPECT_LE(e.memory_bytes, static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE));
  EXPECT_THAT(e.os, HasSubstr("Linux"));
  EXPECT_THAT(e.compiler, testing::MatchesRegex("(GCC|Clang) .*"));
  EXPECT_FALSE(e.build.empty());
  EXPECT_THAT(e.version, testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+ \\(.+\\)"));
  EXPECT_THAT(e.libraries, ElementsAre("onednn 9.9"));
}

TEST(Memory, AvailableIsLessThanAllOfIt) {
  EXPECT_GT(available_memory_bytes(), 0);
  EXPECT_LE(available_memory_bytes(), machine_memory_bytes());
}

TEST(Memory, KnowsWhatUlimitLeaves) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  if (before.rlim_cur == RLIM_INFINITY) {
    EXPECT_EQ(address_space_left(), std::numeric_limits<std::int64_t>::max());
  }
  constexpr rlim_t kLimit = rlim_t{1} << 46;  // more than any sanitizer's shadow
  const rlimit lowered{.rlim_cur = std::min(kLimit, before.rlim_max), .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &lowered), 0);
  const auto left = address_space_left();
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_GT(left, 0);
  EXPECT_LE(left + resident_bytes(), static_cast<std::int64_t>(lowered.rlim_cur)) << "it has some already";
}

TEST(Memory, PeakRemembersWhatIsGoneUntilItIsReset) {
  constexpr std::size_t kBytes = 64 << 20;
  const bool can_reset = reset_peak_memory();
  const std::int64_t before = resident_bytes();
  ASSERT_GT(before, 0);
  {
    base::Buffer block(kBytes);
    std::memset(block.data(), 1, block.bytes());
    EXPECT_GE(resident_bytes(), before + static_cast<std::int64_t>(kBytes) * 9 / 10);
  }
  EXPECT_GE(peak_resident_bytes(), before + static_cast<std::int64_t>(kBytes) * 9 / 10);
  if (!can_reset) GTEST_SKIP() << "this system does not let a process reset its peak (/proc/self/clear_refs)";
  ASSERT_TRUE(reset_peak_memory());
  EXPECT_LT(peak_resident_bytes(), before + static_cast<std::int64_t>(kBytes) / 2);
}

}  // namespace
}  // namespace paceline::measure
