#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "measure/disturbance.h"

namespace paceline::measure {
namespace {

Record on_gpu(std::vector<GpuProcessRecord> others) {
  Record record;
  record.environment.cores = 4;
  record.gpus = {{.index = 1, .others = std::move(others)}};
  return record;
}

TEST(Disturbance, IsMoreThanATenthOfTheCores) {
  Record record;
  record.environment.cores = 4;
  EXPECT_EQ(disturbance_of(record), Disturbance::maybe) << "nobody knows";
  EXPECT_EQ(competitors(record), 0);
  record.window.others_cores = 0.4;
  EXPECT_EQ(disturbance_of(record), Disturbance::none);
  record.window.others_cores = 0.75;
  EXPECT_EQ(disturbance_of(record), Disturbance::disturbed);
  EXPECT_EQ(text_about_disturbance(record), "other programs kept 0.75 of 4 cores busy");
  EXPECT_EQ(competitors(record), 1);
  record.window.others_cores = 5;
  EXPECT_EQ(competitors(record), 5);
  EXPECT_EQ(text_about_disturbance(record), "other programs kept 5.00 cores busy");
}

TEST(Disturbance, IsAProcessOfAnotherProgramOnAGpuOfTheRun) {
  EXPECT_EQ(disturbance_of(on_gpu({})), Disturbance::none);
  const auto one = on_gpu({{.pid = 41, .name = "python3"}});
  EXPECT_EQ(disturbance_of(one), Disturbance::disturbed);
  EXPECT_EQ(text_about_disturbance(one), "python3 (process 41) was on GPU 1 too");
  EXPECT_EQ(text_about_disturbance(on_gpu({{.pid = 41}, {.pid = 0}})),
            "process 41, a process of another program were on GPU 1 too");
  EXPECT_EQ(text_about_disturbance(on_gpu(std::vector<GpuProcessRecord>(5, {.pid = 9, .name = "a"}))),
            "a (process 9), a (process 9), a (process 9), 2 more were on GPU 1 too");
}

TEST(Disturbance, IsAPauseOfTheRun) {
  Record record;
  record.environment.cores = 4;
  record.window.wall_s = 10;
  record.window.paused_s = 0.01;  // not worth a word
  EXPECT_EQ(disturbance_of(record), Disturbance::maybe);
  record.window.paused_s = 0.3;
  EXPECT_EQ(disturbance_of(record), Disturbance::disturbed) << "nobody knows of others, but of this";
  EXPECT_EQ(competitors(record), 0) << "it stood still alone";
  EXPECT_EQ(text_about_disturbance(record),
            "the run stood still for 0.3 s (it was stopped, or its machine was)");
  record.window.others_cores = 0.75;
  EXPECT_EQ(
      text_about_disturbance(record),
      "other programs kept 0.75 of 4 cores busy, and the run stood still for 0.3 s (it was stopped, or its "
      "machine was)");
  record.window.paused_s = 30'000;  // the lid was closed for a night: the window itself is no longer
  record.window.others_cores = 0;
  EXPECT_EQ(disturbance_of_cores(record), Disturbance::disturbed);
}

TEST(Disturbance, SaysBoth) {
  auto record = on_gpu({{.pid = 41, .name = "python3"}});
  record.gpus->front().host = "b";
  record.window.others_cores = 1;
  EXPECT_EQ(text_about_disturbance(record),
            "other programs kept 1.00 of 4 cores busy, and python3 (process 41) was on GPU 1 of b too");
  EXPECT_EQ(text_about_disturbance_of_gpus(record), "python3 (process 41) was on GPU 1 of b too");
}

}  // namespace

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

namespace {

ProcessorTimes at(double second, double machine, double own) {
  return {.when = base::TimePoint{} +
                  std::chrono::duration_cast<base::Clock::duration>(std::chrono::duration<double>(second)),
          .machine_s = machine,
          .own_s = own};
}

TEST(ProcessorTimes, AreThereAndGrowWithWorkOfOnesOwn) {
  const auto begin = processor_times();
  ASSERT_TRUE(begin.has_value());
  double sink = 0;
  while (processor_times()->own_s < begin->own_s + 0.05) sink += 1;
  EXPECT_GT(sink, 0);
  EXPECT_GE(processor_times()->machine_s, begin->machine_s);
}

TEST(CoresOfOthers, IsWhatTheMachineDidBesidesUs) {
  EXPECT_DOUBLE_EQ(*cores_of_others(at(10, 100, 50), at(14, 107, 54)), 0.75);
  EXPECT_DOUBLE_EQ(*cores_of_others(at(10, 100, 50), at(14, 107, 54), 2), 0.25);  // 2 s went to a sibling
  EXPECT_DOUBLE_EQ(*cores_of_others(at(10, 100, 50), at(14, 104, 54.01)), 0);     // a tick too few
}

TEST(CoresOfOthers, IsNotGuessedFromFewTicksOrNothing) {
  EXPECT_FALSE(cores_of_others(at(10, 100, 50), at(10.5, 101, 50)).has_value());
  EXPECT_FALSE(cores_of_others(std::nullopt, at(10, 100, 50)).has_value());
}

}  // namespace
}  // namespace paceline::measure
