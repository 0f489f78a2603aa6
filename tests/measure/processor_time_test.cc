#include "measure/processor_time.h"

#include <gtest/gtest.h>

namespace paceline::measure {
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
