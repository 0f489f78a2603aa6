#include "measure/noise_scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "measure/statistics.h"

namespace paceline::measure {
namespace {

/// Gradients drawn around a known one: `workers` small batches a step.
struct Drawn {
  int dimensions = 60, workers = 4, steps = 80;
  std::int64_t small_batch = 16;
  double squared_gradient = 2, variance = 300;  ///< |G|^2, S

  [[nodiscard]] GradientSquares squares(std::mt19937& generator) const {
    const double per_dimension = std::sqrt(squared_gradient / dimensions);
    std::normal_distribution<double> noise(
        0, std::sqrt(variance / dimensions / static_cast<double>(small_batch)));
    GradientSquares drawn{.every = 1,
                          .small_batch = small_batch,
                          .large_batch = workers * small_batch,
                          .small = {},
                          .large = {}};
    for (int step = 0; step < steps; ++step) {
      double small = 0, large = 0;
      for (int i = 0; i < dimensions; ++i) {
        double sum = 0;
        for (int worker = 0; worker < workers; ++worker) {
          const double one = per_dimension + noise(generator);
          small += one * one;
          sum += one;
        }
        large += std::pow(sum / workers, 2);
      }
      drawn.small.push_back(small / workers);
      drawn.large.push_back(large);
    }
    return drawn;
  }
};

TEST(NoiseScale, IsUnbiasedAndItsIntervalCovers) {
  std::mt19937 generator(7);
  for (const Drawn& drawn :
       {Drawn{}, Drawn{.workers = 2, .small_batch = 64}, Drawn{.steps = 300, .variance = 1500}}) {
    constexpr int kTrials = 400;
    double variance = 0, gradient = 0;
    int covered = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      const auto found = noise_scale(drawn.squares(generator)).value();
      variance += found.variance / kTrials;
      gradient += found.squared_gradient / kTrials;
      const double truth = drawn.variance / drawn.squared_gradient;
      covered += found.low <= truth && truth <= found.high.value_or(INFINITY);
    }
    EXPECT_NEAR(variance / drawn.variance, 1, 0.02);
    EXPECT_NEAR(gradient / drawn.squared_gradient, 1, 0.02);
    EXPECT_GE(covered, 0.93 * kTrials);
    EXPECT_LE(covered, 0.97 * kTrials);
  }
}

// Where the gradient drowns in noise, only a lower end is known.
TEST(NoiseScale, HasNoUpperEndWithoutAGradient) {
  std::mt19937 generator(3);
  const Drawn drawn{.steps = 40, .squared_gradient = 0.001, .variance = 3000};
  int open = 0, known = 0;
  for (int trial = 0; trial < 50; ++trial) {
    const auto found = noise_scale(drawn.squares(generator)).value();
    if (found.high) continue;
    ++open;
    known += found.low > 0;  // nothing is known if |G|^2 is clearly negative, by chance
    EXPECT_LT(found.low, 3000 / 0.001);
  }
  EXPECT_GE(open, 45);
  EXPECT_GE(known, 40);
}

// Neither |G|^2 nor S can be told from 0, and they vary together: 0 is not excluded.
TEST(NoiseScale, ExcludesNothingWithoutNoise) {
  std::vector<double> small, large;
  for (int i = 0; i < 12; ++i) {
    const double both = i % 2 == 0 ? 5 : -5;  // S and |G|^2 lie around 1.5 and -1, 5 up and down
    const double variance = 1.5 + both, gradient = -1 + both;
    small.push_back(gradient + variance / 10);
    large.push_back(gradient + variance / 40);
  }
  const auto found = noise_scale(small, large, 10, 40).value();
  EXPECT_FALSE(found.batch);
  EXPECT_FALSE(found.high);
  EXPECT_EQ(found.low, 0);
}

TEST(NoiseScale, NeedsSeveralSteps) {
  const std::vector<double> seven(7, 1.0), eight(8, 1.0);
  EXPECT_FALSE(noise_scale(seven, seven, 1, 2));
  EXPECT_TRUE(noise_scale(eight, eight, 1, 2));
}

// |g|^2 of 10 samples 5, of 40 samples 2: |G|^2 + S / 10 = 5, |G|^2 + S / 40 = 2.
TEST(NoiseScale, SolvesItsTwoEquations) {
  const std::vector<double> small(20, 5.0), large(20, 2.0);
  const auto found = noise_scale(small, large, 10, 40).value();
  EXPECT_DOUBLE_EQ(found.variance, 40);
  EXPECT_DOUBLE_EQ(found.squared_gradient, 1);
  EXPECT_DOUBLE_EQ(found.batch.value(), 40);
  EXPECT_NEAR(found.low, 40, 1e-9);
  EXPECT_NEAR(found.high.value(), 40, 1e-9);
}

TEST(NoiseScale, OfAnEpochKeepsFewValues) {
  GradientSquares squares{.every = 10, .small_batch = 1, .large_batch = 2, .small = {}, .large = {}};
  for (int i = 0; i < 300; ++i) {
    squares.small.push_back(i);
    squares.large.push_back(2 * i);
  }
  const auto kept = with_few_values(squares);
  EXPECT_EQ(kept.mean_of, 3);
  ASSERT_EQ(kept.small.size(), 100);
  EXPECT_EQ(kept.small[1], 4);
  EXPECT_EQ(kept.large[99], 2 * 298);
  EXPECT_EQ(with_few_values(kept).mean_of, 3);
}

}  // namespace
}  // namespace paceline::measure
