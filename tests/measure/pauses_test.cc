#include "measure/pauses.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <thread>

namespace paceline::measure {
namespace {

/// `running`, `slept`, `set` seconds later, in which the process had `worked` seconds of processor time.
Clocks later(double running, double worked, double slept = 0, double set = 0) {
  const Clocks before;
  return {.running_s = before.running_s + running,
          .with_sleep_s = before.with_sleep_s + running + slept,
          .of_day_s = before.of_day_s + running + slept + set,
          .processor_s = before.processor_s + worked};
}

TEST(Pauses, AreGapsWithoutProcessorTime) {
  EXPECT_EQ(paused_between({}, later(0.02, 0.02), 1), 0);
  EXPECT_EQ(paused_between({}, later(0.15, 0), 1), 0) << "late, as on a busy machine";
  EXPECT_NEAR(paused_between({}, later(4.02, 0.001), 1), 4, 1e-9);
  EXPECT_NEAR(paused_between({}, later(0.32, 0.03), 2), 0.3, 1e-9) << "both worked before it";
  EXPECT_EQ(paused_between({}, later(0.62, 0.3), 1), 0) << "only this thread waited for a core";
  EXPECT_EQ(paused_between({}, later(0.62, 0.2), 1), 0) << "the worker had a third of a core";
}

TEST(Pauses, AreSleepsAndSteppedClocks) {
  EXPECT_NEAR(paused_between({}, later(0.02, 0.02, 28'800), 1), 28'800, 1e-6);
  EXPECT_EQ(paused_between({}, later(0.02, 0.02, 0.001), 1), 0);
  EXPECT_NEAR(paused_between({}, later(0.02, 0.02, 0, 3), 1), 3, 1e-9) << "no other clock saw the migration";
  EXPECT_EQ(paused_between({}, later(0.02, 0.02, 0, 0.01), 1), 0) << "a clock is corrected all the time";
  EXPECT_EQ(paused_between({}, later(0.02, 0.02, 0, -3600), 1), 0) << "somebody set it back";
}

TEST(Pauses, AreCountedFromTheBeginning) {
  PauseWatch watch(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  watch.begin();
  ASSERT_TRUE(watch.seconds().has_value());
  EXPECT_GE(*watch.seconds(), 0);
}

// Also one that ends directly before the question: the thread may not have looked yet.
TEST(Pauses, OfAStoppedProcessAreSeen) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    PauseWatch watch(1);
    watch.begin();
    ::raise(SIGSTOP);
    const double seconds = watch.seconds().value_or(-1);
    [[maybe_unused]] const auto written = ::write(pipe[1], &seconds, sizeof seconds);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  ::kill(child, SIGCONT);
  double seconds = 0;
  ASSERT_EQ(::read(pipe[0], &seconds, sizeof seconds), static_cast<ssize_t>(sizeof seconds));
  EXPECT_GE(seconds, 0.4);
  ::waitpid(child, &status, 0);
  for (const int end : pipe) ::close(end);
}

}  // namespace
}  // namespace paceline::measure
