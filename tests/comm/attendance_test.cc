#include "comm/attendance.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <thread>

#include "base/process_state.h"

namespace paceline::comm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Launch launch_of(int local, int locals, int processes) {
  return {.by = "a test",
          .process = local,
          .processes = processes,
          .job = fmt::format("attendance test {}", ::getpid()),
          .local = local,
          .locals = locals,
          .meeting_host = {}};
}

TEST(Attendance, TheLowestThatIsThereNamesWhoHasNotBegun) {
  const Attendance zero(launch_of(0, 4, 4));
  EXPECT_THAT(zero.absent(), ElementsAre(HasSubstr("process 1 on host"), HasSubstr("process 2 on host"),
                                         HasSubstr("process 3 on host")));
  const Attendance two(launch_of(2, 4, 4));
  EXPECT_THAT(zero.absent(), ElementsAre(HasSubstr("process 1 on host"), HasSubstr("process 3 on host")));
  EXPECT_THAT(two.absent(), IsEmpty()) << "the lowest says it";
  const Attendance one(launch_of(1, 4, 4));
  {
    const Attendance three(launch_of(3, 4, 4));
    EXPECT_THAT(zero.absent(), IsEmpty());
  }
  EXPECT_THAT(zero.absent(), ElementsAre(HasSubstr("has not begun"))) << "its mark went with it";
}

TEST(Attendance, OnOneOfSeveralHostsItsNumberThereIsAllThatIsKnown) {
  const Attendance one(launch_of(1, 2, 4));
  EXPECT_THAT(one.absent(), ElementsAre(HasSubstr("the process with local rank 0 on host")));
}

TEST(Attendance, WithoutALaunchersWordNobodyIsMissed) {
  auto launch = launch_of(0, 0, 4);
  EXPECT_THAT(Attendance(launch).absent(), IsEmpty());
  launch = launch_of(0, 4, 4);
  launch.job.clear();
  EXPECT_THAT(Attendance(launch).absent(), IsEmpty());
}

TEST(Attendance, WhoIsStoppedIsNamedWithItsProcessId) {
  const pid_t child = ::fork();
  auto launch = launch_of(0, 2, 2);
  launch.job = "attendance test, stopped " + std::to_string(child == 0 ? ::getpid() : child);
  if (child == 0) {
    const Attendance zero(launch);
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  while (base::state_of_process(child) != 'T') std::this_thread::sleep_for(std::chrono::milliseconds(2));
  launch.process = launch.local = 1;
  const Attendance one(launch);
  EXPECT_THAT(one.absent(), ElementsAre(HasSubstr(fmt::format("(pid {}) is stopped", child))));
  ::kill(child, SIGKILL);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_THAT(one.absent(), ElementsAre(HasSubstr("has not begun")));
  EXPECT_EQ(base::state_of_process(child), '\0');
}

}  // namespace
}  // namespace paceline::comm
