#include "analysis/trainings/noise.h"

#include <gtest/gtest.h>

#include "golden/records.h"

namespace paceline::analysis {
namespace {

/// Epochs of `values` measured steps each, in which the noise scale is 10, 20, 30, ...
measure::Record noisy(int epochs, int values, std::int64_t small_batch = 16) {
  auto record =
      golden::make_training({.accuracies = std::vector<double>(static_cast<std::size_t>(epochs), 0.5)});
  for (int epoch = 0; epoch < epochs; ++epoch) {
    // |G|^2 = 1 and S = 10 (epoch + 1), with a little spread.
    const double variance = 10 * (epoch + 1);
    auto& squares = record.epochs[static_cast<std::size_t>(epoch)].gradient_squares.emplace();
    squares = {.every = 10, .small_batch = small_batch, .large_batch = 64, .small = {}, .large = {}};
    for (int i = 0; i < values; ++i) {
      const double spread = i % 2 == 0 ? 1.01 : 0.99;
      squares.small.push_back(spread * (1 + variance / static_cast<double>(small_batch)));
      squares.large.push_back(spread * (1 + variance / 64));
    }
  }
  return record;
}

TEST(Noise, FollowsTheTraining) {
  const auto course = noise_course(noisy(3, 100)).value();
  ASSERT_EQ(course.points.size(), 3);
  for (int epoch = 0; epoch < 3; ++epoch) {
    const NoisePoint& point = course.points[static_cast<std::size_t>(epoch)];
    EXPECT_NEAR(point.scale.batch.value(), 10 * (epoch + 1), 1e-9);
    EXPECT_DOUBLE_EQ(point.epochs, epoch + 1);
  }
  EXPECT_EQ(course.steps, 300);
  EXPECT_NEAR(course.whole.batch.value(), 20, 1e-9);
  EXPECT_NEAR(course.second_half->batch.value(), (50 * 20 + 100 * 30) / 150.0, 1e-9);
}

TEST(Noise, JoinsShortEpochs) {
  const auto course = noise_course(noisy(4, 30)).value();
  ASSERT_EQ(course.points.size(), 1);
  EXPECT_NEAR(course.points[0].scale.batch.value(), 25, 1e-9);
  EXPECT_DOUBLE_EQ(course.points[0].epochs, 4);
}

// A resumed training may have other batches: squares of the two are not one series.
TEST(Noise, IsOfTheLastBatches) {
  auto record = noisy(4, 100);
  record.epochs.back().gradient_squares = noisy(1, 100, 32).epochs.back().gradient_squares;
  const auto course = noise_course(record).value();
  EXPECT_EQ(course.small_batch, 32);
  EXPECT_EQ(course.steps, 100);
  EXPECT_NEAR(course.whole.batch.value(), 10, 1e-9);
}

TEST(Noise, PassesOverWhatMakesNoSense) {
  auto record = noisy(2, 100);
  record.epochs.back().gradient_squares->large.pop_back();
  EXPECT_EQ(noise_course(record).value().steps, 100);
  record.epochs.front().gradient_squares->small_batch = 0;
  EXPECT_FALSE(noise_course(record));
}

TEST(Noise, IsNothingWithoutEnoughSteps) {
  EXPECT_FALSE(noise_course(noisy(1, 7)));
  EXPECT_FALSE(noise_course(golden::make_training({.accuracies = {0.5}})));
}

}  // namespace
}  // namespace paceline::analysis
