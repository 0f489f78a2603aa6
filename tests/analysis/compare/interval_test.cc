#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "analysis/compare/interval.h"

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

TEST(Interval, FewStepsOfOneRunHaveNone) {
  const auto of = [](std::vector<std::vector<double>> repeats) { return pooled(repeats); };
  const Estimate few = of({{1, 2, 3}});
  EXPECT_EQ(few.n, 3);
  EXPECT_FALSE(has_interval(few));
  EXPECT_FALSE(has_interval(scaled(over(10, few), 2)));
  EXPECT_FALSE(has_interval(ratio(of({{1, 2, 3, 4, 5, 6}}), few)));
  EXPECT_TRUE(has_interval(of({{1, 2, 3, 4, 5, 6}}))) << "their extremes hold the median with 97 %";
  EXPECT_TRUE(has_interval(of({{1, 2, 3}, {2, 3, 4}}))) << "the medians of two runs";
}

TEST(Interval, TurnsRoundWhenSecondsBecomeImagesASecond) {
  const Estimate rate = over(128, {.median = 2, .low = 1, .high = 4, .n = 5});
  EXPECT_DOUBLE_EQ(rate.median, 64);
  EXPECT_DOUBLE_EQ(rate.low, 32);
  EXPECT_DOUBLE_EQ(rate.high, 128);
}

/// Runs of 8 steps of the true median 1, as docs/comparing.md simulates them.
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

namespace {

Estimate interval(double low, double high) {
  return {.median = (low + high) / 2, .low = low, .high = high, .n = 20};
}

TEST(Change, IsNamedAsCriterionNamesIt) {
  EXPECT_EQ(change_of(interval(1.08, 1.16), false), Change::improved);
  EXPECT_EQ(change_of(interval(0.90, 0.95), false), Change::regressed);
  EXPECT_EQ(change_of(interval(0.97, 1.04), false), Change::no_change);
  EXPECT_EQ(change_of(interval(1.005, 1.05), false), Change::within_noise) << "it may be below 2 %";
  EXPECT_EQ(change_of(interval(0.985, 0.995), false), Change::within_noise);
}

TEST(Change, TakesTheThresholdThatIsGivenAndMoreOfOneRun) {
  EXPECT_EQ(change_of(interval(1.03, 1.05), false, 0.01), Change::improved);
  EXPECT_EQ(change_of(interval(1.03, 1.05), false, 0.04), Change::within_noise);
  EXPECT_EQ(change_of(interval(1.03, 1.05), true, 0.01), Change::within_noise);
  EXPECT_EQ(change_of(interval(0.80, 0.85), true, 0.01), Change::regressed);
}

TEST(RatioOfRuns, IsOfTheThroughputs) {
  const std::vector<std::vector<double>> slow{{0.2, 0.2, 0.2}, {0.2, 0.2, 0.2}};
  const std::vector<std::vector<double>> fast{{0.1, 0.1, 0.1}, {0.1, 0.1, 0.1}};
  const auto ratio = ratio_of_runs(slow, fast);
  EXPECT_DOUBLE_EQ(ratio.median, 2);
  EXPECT_DOUBLE_EQ(ratio.low, 2);
  EXPECT_DOUBLE_EQ(ratio.high, 2);
}

// By hand: runs of 100, 110 ms (A) and 100, 100 ms (B). On the logarithm A's runs lie 0.0953 apart, so their
// mean errs by 0.0953 / 2 = 0.0477, with one degree of freedom; as_rare_as_two_errors(1) is 12.3.
TEST(RatioOfRuns, HoldsWhatRunsDifferBy) {
  const std::vector<std::vector<double>> a{{0.1, 0.1, 0.1}, {0.11, 0.11, 0.11}};
  const std::vector<std::vector<double>> b{{0.1, 0.1, 0.1}, {0.1, 0.1, 0.1}};
  const auto ratio = ratio_of_runs(a, b);
  const double centre = std::log(0.11 / 0.1) / 2;
  const double half = measure::as_rare_as_two_errors(1) * std::log(1.1) / 2;
  EXPECT_NEAR(ratio.low, std::exp(centre - half), 1e-12);
  EXPECT_NEAR(ratio.high, std::exp(centre + half), 1e-12);
}

TEST(RatioOfRuns, BorrowsTheSpreadForASideOfOneRun) {
  const std::vector<std::vector<double>> several{{0.10, 0.10}, {0.11, 0.11}, {0.12, 0.12}};
  const std::vector<std::vector<double>> one{{0.11, 0.11}};
  const auto ratio = ratio_of_runs(several, one);
  EXPECT_LT(ratio.low, 0.8);
  EXPECT_GT(ratio.high, 1.2);
}

/// Part of 1,500 comparisons of two times `repeats` runs of `steps` steps, of which both sides are alike,
/// that were called improved or regressed. Steps spread by 4 %, runs by `of_runs` times as much.
double false_alarms(int repeats, double of_runs) {
  constexpr int kTrials = 1500, kSteps = 8;
  constexpr double kSpread = 0.04;
  std::mt19937_64 random(static_cast<std::uint64_t>(repeats * 1000 + of_runs * 10));
  std::normal_distribution<double> normal;
  const auto side = [&] {
    std::vector<std::vector<double>> runs(static_cast<std::size_t>(repeats));
    for (auto& run : runs) {
      const double level = of_runs * kSpread * normal(random);
      for (int step = 0; step < kSteps; ++step)
        run.push_back(0.1 * std::exp(level + kSpread * normal(random)));
    }
    return runs;
  };
  int alarms = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const auto a = side(), b = side();
    const Change change = change_of(ratio_of_runs(a, b), repeats == 1);
    alarms += change == Change::improved || change == Change::regressed ? 1 : 0;
  }
  return static_cast<double>(alarms) / kTrials;
}

TEST(Change, OfWhatDidNotChangeIsCalledOneInFewerThanFiveOfAHundred) {
  for (const int repeats : {2, 3, 5})
    for (const double of_runs : {0.0, 0.5, 1.0, 4.0})
      EXPECT_LT(false_alarms(repeats, of_runs), 0.05) << repeats << " repeats, runs " << of_runs;
  EXPECT_LT(false_alarms(1, 0.5), 0.05) << "one run a side";
}

// A test that can fail only one way would pass a rule that never says anything.
TEST(Change, OfTenPercentIsFoundWithThreeRepeatsThatDifferByOnePercent) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  int found = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const auto side = [&](double seconds) {
      std::vector<std::vector<double>> runs(3);
      for (auto& run : runs) {
        const double level = 0.01 * normal(random);
        for (int step = 0; step < 20; ++step)
          run.push_back(seconds * std::exp(level + 0.01 * normal(random)));
      }
      return runs;
    };
    const auto a = side(0.1), b = side(0.11);
    found += change_of(ratio_of_runs(a, b), false) == Change::regressed ? 1 : 0;
  }
  EXPECT_GT(found, 180);
}

}  // namespace
}  // namespace paceline::analysis
