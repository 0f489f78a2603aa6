#include "measure/disturbance.h"

#include <gtest/gtest.h>

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
  EXPECT_FALSE(is_disturbed(record)) << "nobody knows";
  EXPECT_FALSE(knows_others(record));
  record.window.others_cores = 0.4;
  EXPECT_FALSE(is_disturbed(record));
  record.window.others_cores = 0.75;
  EXPECT_TRUE(is_disturbed(record));
  EXPECT_EQ(disturbance(record), "other programs kept 0.75 of 4 cores busy");
  record.window.others_cores = 5;
  EXPECT_EQ(disturbance(record), "other programs kept 5.00 cores busy");
}

TEST(Disturbance, IsAProcessOfAnotherProgramOnAGpuOfTheRun) {
  EXPECT_FALSE(is_disturbed(on_gpu({})));
  EXPECT_TRUE(knows_others(on_gpu({})));
  const auto one = on_gpu({{.pid = 41, .name = "python3"}});
  EXPECT_TRUE(is_disturbed(one));
  EXPECT_EQ(disturbance(one), "python3 (process 41) was on GPU 1 too");
  EXPECT_EQ(disturbance(on_gpu({{.pid = 41}, {.pid = 0}})),
            "process 41, a process of another program were on GPU 1 too");
  EXPECT_EQ(disturbance(on_gpu(std::vector<GpuProcessRecord>(5, {.pid = 9, .name = "a"}))),
            "a (process 9), a (process 9), a (process 9), 2 more were on GPU 1 too");
}

TEST(Disturbance, SaysBoth) {
  auto record = on_gpu({{.pid = 41, .name = "python3"}});
  record.gpus->front().host = "b";
  record.window.others_cores = 1;
  EXPECT_EQ(disturbance(record),
            "other programs kept 1.00 of 4 cores busy, and python3 (process 41) was on GPU 1 of b too");
  EXPECT_EQ(disturbance_of_gpus(record), "python3 (process 41) was on GPU 1 of b too");
}

}  // namespace
}  // namespace paceline::measure
