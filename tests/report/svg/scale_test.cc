// Which values an axis names, and where they lie.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "report/svg/svg.h"

namespace paceline::report::svg {
namespace {

using testing::ElementsAre;

TEST(Scale, NamesTheMeasuredValuesWhereTheyFit) {
  const Axis batch{.label = "batch", .log = true};
  EXPECT_THAT(scale_for({32, 64, 128, 64}, batch, 0, 400, Ticks::measured).ticks, ElementsAre(32, 64, 128));
  EXPECT_THAT(scale_for({8, 16, 32, 64, 128, 256, 512, 1024}, batch, 0, 200, Ticks::measured).ticks,
              ElementsAre(8, 32, 128, 512));
  EXPECT_THAT(scale_for({3, 50, 700}, batch, 0, 400, Ticks::measured).ticks, ElementsAre(3, 50, 700));
  EXPECT_THAT(scale_for({1, 2, 4}, {.label = "workers"}, 0, 400, Ticks::measured).ticks,
              ElementsAre(1, 2, 4));
}

TEST(Scale, BeginsAtZeroUnlessFarFromIt) {
  const Axis axis{.label = "y"};
  EXPECT_EQ(scale_for({5, 100}, axis, 250, 0, Ticks::round).low, 0);
  EXPECT_GT(scale_for({97, 99}, axis, 250, 0, Ticks::round).low, 90);
  EXPECT_EQ(scale_for({97, 99}, axis, 0, 250, Ticks::zero).low, 0);
  EXPECT_LT(scale_for({-3, 9}, axis, 250, 0, Ticks::round).low, -3);
}

TEST(Scale, HasRoomForEveryTick) {
  for (const auto& values : std::vector<std::vector<double>>{
           {0, 0}, {}, {7}, {1e-9, 1e9}, {0.1, 0.2, 0.30001}, {1, 1e4}, {2, 7}, {-5, -4}, {1e15, 2e15}})
    for (const bool log : {false, true})
      for (const Ticks ticks : {Ticks::round, Ticks::measured, Ticks::zero})
        for (const double size : {60.0, 250.0, 450.0}) {
          const Scale scale = scale_for(values, {.label = "x", .log = log}, 0, size, ticks);
          ASSERT_FALSE(scale.ticks.empty());
          for (std::size_t i = 0; i < scale.ticks.size(); ++i) {
            EXPECT_GE(scale(scale.ticks[i]), -1e-6 * size);
            EXPECT_LE(scale(scale.ticks[i]), size * (1 + 1e-6));
            if (i == 0) continue;
            EXPECT_GT(scale(scale.ticks[i]) - scale(scale.ticks[i - 1]), 20);
          }
        }
}

TEST(Scale, WritesTicksAsPeopleReadThem) {
  const Axis plain{.label = "n"}, bytes{.label = "m", .unit = "B"};
  for (const auto& [value, text] : std::vector<std::pair<double, std::string>>{
           {1024, "1,024"}, {0.25, "0.25"}, {102.5, "102.5"}, {0, "0"}, {1e-7, "1e-07"}})
    EXPECT_EQ(tick_text(value, plain), text);
  EXPECT_EQ(tick_text(65536, bytes), "64 KiB");
  EXPECT_EQ(tick_text(1e7, bytes), "10.0 MB");
  EXPECT_EQ(axis_text(bytes), "m");
  EXPECT_EQ(axis_text({.label = "throughput", .unit = "images/s"}), "throughput [images/s]");
}

}  // namespace
}  // namespace paceline::report::svg
