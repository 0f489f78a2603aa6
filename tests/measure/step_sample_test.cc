#include "measure/step_sample.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace paceline::measure {
namespace {

TEST(StepSample, OfEachGroupExactlyOneStepIsTimed) {
  for (int halvings = 0; halvings <= 6; ++halvings) {
    const std::int64_t group = std::int64_t{1} << halvings;
    for (std::int64_t begin = 0; begin < 64 * group; begin += group) {
      int timed = 0;
      for (std::int64_t step = begin; step < begin + group; ++step) timed += is_timed(step, halvings) ? 1 : 0;
      EXPECT_EQ(timed, 1) << "of the " << group << " steps from " << begin;
    }
  }
}

/// With a fixed place in each group, steps that recur every 8 steps would be all of the list or none of it.
TEST(StepSample, WhatRecursAtAFixedDistanceIsTimedAsOftenAsItHappens) {
  constexpr std::int64_t kSteps = 1 << 16;
  constexpr int kHalvings = 3, kPeriod = 8;
  for (int place = 0; place < kPeriod; ++place) {
    int timed = 0, all = 0;
    for (std::int64_t step = 0; step < kSteps; ++step) {
      if (!is_timed(step, kHalvings)) continue;
      ++all;
      timed += step % kPeriod == place ? 1 : 0;
    }
    EXPECT_EQ(all, kSteps / kPeriod);
    EXPECT_NEAR(timed, all / kPeriod, 5 * 30) << "five standard deviations, place " << place;
  }
}

TEST(StepSample, HalvingLeavesWhatIsTimed) {
  for (const std::size_t steps : {0u, 1u, 2u, 3u, 7u, 64u, 1001u}) {
    std::vector<double> times(steps);
    std::iota(times.begin(), times.end(), 0.0);
    for (int halvings = 0; halvings < 5; ++halvings) {
      halve(times, halvings);
      std::vector<double> wanted;
      for (std::size_t step = 0; step < steps; ++step)
        if (is_timed(static_cast<std::int64_t>(step), halvings + 1))
          wanted.push_back(static_cast<double>(step));
      EXPECT_EQ(times, wanted) << steps << " steps halved " << halvings + 1 << " times";
      EXPECT_EQ(times.capacity(), times.size());
    }
  }
}

}  // namespace
}  // namespace paceline::measure
