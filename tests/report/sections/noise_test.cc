#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/sections/curves.h"

namespace paceline::report {
namespace {

using analysis::NoiseCourse;
using testing::HasSubstr;

NoiseCourse course_of(const measure::NoiseScale& scale) {
  return {.small_batch = 32,
          .large_batch = 128,
          .every = 10,
          .steps = 460,
          .whole = scale,
          .points = {{3, scale}}};
}

TEST(Noise, SaysUpToWhichBatchSamplesCount) {
  const auto course = course_of({.batch = 1234, .low = 1100, .high = 1400});
  EXPECT_EQ(
      text_about_noise(course),
      "The noise scale of the gradient is 1,200 samples [1,100, 1,400] (mean over the training, from 460 steps; "
      "batches of 32 and 128): a batch up to about 120 costs almost no more samples than a small one (at most a "
      "tenth), one of 1,200 about twice as many.");
  const auto plot = noise_plot(course, "training", "mnist-cnn");
  ASSERT_EQ(plot.series.front().points.size(), 1);
  EXPECT_EQ(plot.series.front().points[0].low, 1100);
  EXPECT_TRUE(plot.y.log);
}

TEST(Noise, SaysWhatTheSecondHalfHad) {
  auto course = course_of({.batch = 1234, .low = 1100, .high = 1400});
  course.second_half = {.batch = 2510, .low = 2000, .high = 3000};
  EXPECT_THAT(text_about_noise(course),
              HasSubstr("twice as many. In the second half it was 2,500 [2,000, 3,000]."));
  course.second_half = {.batch = 2510, .low = 2000, .high = {}};
  EXPECT_THAT(text_about_noise(course), HasSubstr(" In the second half it was above 2,000."));
}

TEST(Noise, SaysWhenOnlyALowerEndExists) {
  const auto course = course_of({.batch = {}, .low = 900, .high = {}});
  EXPECT_THAT(text_about_noise(course), HasSubstr("is above 900 samples"));
  EXPECT_THAT(text_about_noise(course), HasSubstr("batches up to about 90, perhaps far larger ones, cost"));
  EXPECT_TRUE(noise_plot(course, "training", "").series.front().points.empty());
}

TEST(Noise, SaysIfNothingIsKnown) {
  EXPECT_THAT(text_about_noise(course_of({.batch = {}, .low = 0, .high = {}})), HasSubstr("is not known"));
}

}  // namespace
}  // namespace paceline::report
