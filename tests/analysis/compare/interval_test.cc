#include "analysis/compare/interval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

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

/// Runs of 8 steps of the true median 1, as docs/measuring.md simulates them.
std::vector<std::vector<double>> simulate(std::mt19937& random, int repeats, double between, double within) {
  std::normal_distribution<double> normal;
  std::vector<std::vector<double>> runs(static_cast<std::size_t>(repeats));
  for (auto& run : runs) {
    const double offset = between * normal(random);
    for (int step = 0; step < 8; ++step) run.push_back(std::exp(offset + within * normal(random)));
  }
  return runs;
}

bool encloses(const Estimate& figure, double value) { return figure.low <= value && value <= figure.high; }

TEST(Coverage, IsWhatTheDocumentsSay) {
  const struct {
    int repeats;
    double between, within, figure, ratio;
  } cases[] = {{1, 0.02, 0.005, 0.28, 0.29}, {3, 0, 0.02, 0.98, 0.99},     {3, 0.01, 0.02, 0.92, 0.94},
               {3, 0.02, 0.02, 0.82, 0.87},  {3, 0.02, 0.005, 0.74, 0.83}, {5, 0.02, 0.005, 0.93, 0.98}};
  std::mt19937 random(1);
  for (const auto& c : cases) {
    constexpr int kTrials = 3000;
    int figures = 0, ratios = 0;
    for (int i = 0; i < kTrials; ++i) {
      const Estimate a = pooled(simulate(random, c.repeats, c.between, c.within));
      const Estimate b = pooled(simulate(random, c.repeats, c.between, c.within));
      figures += encloses(a, 1) ? 1 : 0;
      ratios += encloses(ratio(a, b), 1) ? 1 : 0;
    }
    // Three standard errors of a count of 3,000 are at most 0.027.
    EXPECT_NEAR(figures / double{kTrials}, c.figure, 0.03) << c.repeats << " repeats, " << c.between;
    EXPECT_NEAR(ratios / double{kTrials}, c.ratio, 0.03) << c.repeats << " repeats, " << c.between;
  }
}

}  // namespace
}  // namespace paceline::analysis
