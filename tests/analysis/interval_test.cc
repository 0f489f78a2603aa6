#include "analysis/interval.h"

#include <gtest/gtest.h>

#include <cmath>

namespace paceline::analysis {
namespace {

TEST(Interval, JoinsTheErrorsOfARatioInQuadrature) {
  // Errors of 3 % and 4 % make one of 5 %.
  const Estimate a{.median = 2, .low = 2 * std::exp(-0.03), .high = 2 * std::exp(0.03), .n = 9};
  const Estimate b{.median = 4, .low = 4 * std::exp(-0.04), .high = 4 * std::exp(0.04), .n = 7};
  const Estimate quotient = ratio(a, b);
  EXPECT_DOUBLE_EQ(quotient.median, 0.5);
  EXPECT_NEAR(quotient.low, 0.5 * std::exp(-0.05), 1e-12);
  EXPECT_NEAR(quotient.high, 0.5 * std::exp(0.05), 1e-12);
  EXPECT_EQ(quotient.n, 7);
}

TEST(Interval, TakesTheRightEndOfALopsidedInterval) {
  // The denominator errs upwards only, so the quotient errs downwards only.
  const Estimate quotient =
      ratio({.median = 6, .low = 6, .high = 6, .n = 3}, {.median = 2, .low = 2, .high = 3, .n = 3});
  EXPECT_DOUBLE_EQ(quotient.median, 3);
  EXPECT_NEAR(quotient.low, 2, 1e-12);
  EXPECT_NEAR(quotient.high, 3, 1e-12);
}

TEST(Interval, HasNoneWhereOnePartIsASingleSample) {
  const Estimate quotient = ratio({.median = 6, .low = 5, .high = 7, .n = 8}, exactly(2));
  EXPECT_DOUBLE_EQ(quotient.median, 3);
  EXPECT_FALSE(has_interval(quotient));
  EXPECT_EQ(quotient.low, quotient.high);
}

TEST(Interval, TurnsRoundWhenSecondsBecomeImagesASecond) {
  const Estimate rate = over(128, {.median = 2, .low = 1, .high = 4, .n = 5});
  EXPECT_DOUBLE_EQ(rate.median, 64);
  EXPECT_DOUBLE_EQ(rate.low, 32);
  EXPECT_DOUBLE_EQ(rate.high, 128);
}

}  // namespace
}  // namespace paceline::analysis
