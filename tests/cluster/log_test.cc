#include "cluster/log.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

namespace paceline::cluster {
namespace {

/// What this process's standard error gets while a child says `text` whose own leads nowhere.
std::string heard_of(const std::string& text) {
  testing::internal::CaptureStderr();
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(STDERR_FILENO);
    log_line(text);
    ::_exit(0);
  }
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  return testing::internal::GetCapturedStderr();
}

TEST(Say, IsPrintedByTheLaunchThatListens) {
  const Ear ear;
  ::setenv(kEar, ear.address().c_str(), 1);
  EXPECT_EQ(heard_of("rank 1 on host a is lost"), "paceline: rank 1 on host a is lost\n");
  std::string far;
  for (int word = 0; word < 1000; ++word) far += fmt::format("rank{} ", word % 10);
  far += "last";
  EXPECT_EQ(heard_of(far), "paceline: " + far + "\n");
  auto stranger = comm::address_of(ear.address());
  ASSERT_TRUE(stranger);
  ++stranger->token;
  ::setenv(kEar, comm::text_of(*stranger).c_str(), 1);
  EXPECT_EQ(heard_of("not of this run"), "");
  ::unsetenv(kEar);
}

TEST(Say, IsPrintedHereWhereNoLaunchListens) {
  const auto said = [](const std::string& text) {
    testing::internal::CaptureStderr();
    log_line(text);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(said("alone"), "paceline: alone\n");
  std::string gone;
  {
    const Ear ear;
    gone = ear.address();
  }
  for (const auto& launch : {gone, std::string("no address")}) {
    ::setenv(kEar, launch.c_str(), 1);
    EXPECT_EQ(said("on its own"), "paceline: on its own\n");
  }
  ::unsetenv(kEar);
}

}  // namespace
}  // namespace paceline::cluster
