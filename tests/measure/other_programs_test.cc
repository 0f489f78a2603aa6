#include "measure/other_programs.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace paceline::measure {
namespace {

TEST(OtherPrograms, AreTheBusiestByName) {
  const ProgramTimes begin{{{{1, 5}, {"make", 10}}, {{2, 5}, {"cc1plus", 1}}, {{3, 5}, {"idle", 100}}}};
  const ProgramTimes end{{{{1, 5}, {"make", 10.5}},
                          {{2, 9}, {"cc1plus", 3}},  // the number was given again: all 3 s are new
                          {{3, 5}, {"idle", 100}},
                          {{4, 6}, {"cc1plus", 4}},
                          {{5, 6}, {"little", 0.1}}}};
  const auto found = busiest_programs(begin, end, 10);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "cc1plus");
  EXPECT_DOUBLE_EQ(found[0].cores, 0.7);
  EXPECT_EQ(found[1].name, "make");
  EXPECT_DOUBLE_EQ(found[1].cores, 0.05);
  EXPECT_EQ(busiest_programs(begin, end, 10, 1).size(), 1u);
  EXPECT_TRUE(busiest_programs(begin, end, 0.5).empty());  // ticks are too coarse
}

TEST(OtherPrograms, SeesAProcessAndNotItself) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  const auto times = program_times();
  const auto has = [](const ProgramTimes& all, pid_t id) {
    return std::any_of(all.programs.begin(), all.programs.end(),
                       [&](const auto& one) { return one.first.first == id; });
  };
  EXPECT_TRUE(has(times, child));
  EXPECT_FALSE(has(times, ::getpid()));
  EXPECT_FALSE(own_program_name().empty());
  EXPECT_FALSE(has(program_times(own_program_name()), child));  // of the same name
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

// A process may end between the list of processes and the read of its figures.
TEST(OtherPrograms, LeavesOutWhatEndsMeanwhile) {
  std::atomic<bool> is_over = false;
  std::thread churn([&] {
    while (!is_over) {
      const pid_t child = ::fork();
      if (child == 0) ::_exit(0);
      if (child > 0) ::waitpid(child, nullptr, 0);
    }
  });
  for (int i = 0; i < 300; ++i) EXPECT_FALSE(program_times("").programs.empty());
  is_over = true;
  churn.join();
}

}  // namespace
}  // namespace paceline::measure
