#include "cluster/log.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

namespace paceline::cluster {
namespace {

/// What this process's standard error gets while a child says `text` whose own leads nowhere. `addition`: to
/// the token of the launch that the child knows.
std::string heard_of(const std::string& text, std::uint64_t addition = 0) {
  testing::internal::CaptureStderr();
  {
    const Ear ear;  // its end comes after what it has heard was printed
    auto launch = comm::address_of(ear.address()).value();
    launch.token += addition;
    ::setenv(kEar, comm::text_of(launch).c_str(), 1);
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(STDERR_FILENO);
      log_line(text);
      ::_exit(0);
    }
    EXPECT_EQ(::waitpid(child, nullptr, 0), child);
    ::unsetenv(kEar);
  }
  return testing::internal::GetCapturedStderr();
}

TEST(Say, IsPrintedByTheLaunchThatListens) {
  EXPECT_EQ(heard_of("rank 1 on host a is lost"), "paceline: rank 1 on host a is lost\n");
  std::string far;
  for (int word = 0; word < 1000; ++word) far += fmt::format("rank{} ", word % 10);
  far += "last";
  EXPECT_EQ(heard_of(far), "paceline: " + far + "\n");
  EXPECT_EQ(heard_of("not of this run", 1), "");
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
