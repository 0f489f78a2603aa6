#include <gtest/gtest.h>

#include <vector>

#include "analysis/predict/score.h"

namespace paceline::analysis {
namespace {

TEST(Rivals, OverheadOfTheMostMeasuredStays) {
  const std::vector<TimedStep> measured{{1, 1.0}, {2, 1.2}};
  const std::vector<std::int64_t> workers{1, 2, 8};
  const auto weak = rivals(measured, workers, Mode::weak).constant_overhead;
  EXPECT_DOUBLE_EQ(weak[0], 1.0);
  EXPECT_DOUBLE_EQ(weak[2], 1.2);
  const auto strong = rivals(measured, workers, Mode::strong).constant_overhead;
  EXPECT_DOUBLE_EQ(strong[2], 1.0 / 8 + 1.2 - 0.5);
}

TEST(Rivals, ScalabilityLawOfThreeNumbersIsExact) {
  const double a = 0.03, b = 0.002;
  std::vector<TimedStep> measured;
  for (const double n : {1.0, 2.0, 4.0}) measured.push_back({n, 0.5 * (1 + a * (n - 1) + b * n * (n - 1))});
  const auto law = rivals(measured, std::vector<std::int64_t>{16}, Mode::weak).scalability_law;
  EXPECT_NEAR(law[0], 0.5 * (1 + a * 15 + b * 16 * 15), 1e-12);
}

TEST(Rivals, ScalabilityLawOfTwoHasOneTerm) {
  const std::vector<TimedStep> measured{{1, 1.0}, {2, 1.1}};
  const auto law = rivals(measured, std::vector<std::int64_t>{11}, Mode::weak).scalability_law;
  EXPECT_NEAR(law[0], 2.0, 1e-12);
}

TEST(Rivals, NothingGainsFromMoreWorkers) {
  const std::vector<TimedStep> measured{{1, 1.0}, {2, 0.9}};
  const auto law = rivals(measured, std::vector<std::int64_t>{64}, Mode::weak).scalability_law;
  EXPECT_DOUBLE_EQ(law[0], 1.0);
}

}  // namespace
}  // namespace paceline::analysis
