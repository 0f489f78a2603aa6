#include "train/record/epoch_figures.h"

#include <gtest/gtest.h>

#include "comm/ranks.h"

namespace paceline::train {
namespace {

/// Rank r's part of step `update`: two samples of loss 1 + r each, of which one is right.
StepFigures step_of(int rank, std::int64_t update) {
  return {.update = update,
          .local = {.loss = 2.0 * (1 + rank), .correct = 1, .samples = 2},
          .lr = 0.1 * static_cast<double>(update),
          .seconds = 0.5};
}

TEST(EpochFigures, AreMeansOverAllSamplesOfAllRanks) {
  for (const int ranks : {1, 2, 3}) {
    const auto errors = comm::on_ranks(ranks, {}, [&](comm::Communicator& communicator) {
      EpochFigures figures(2 * ranks, true);
      for (const std::int64_t update : {1, 2, 3}) figures.add(step_of(communicator.rank(), update));
      EXPECT_EQ(figures.mean_loss(), 1.0 + communicator.rank()) << "of this rank alone";
      std::vector<measure::StepRecord> steps;
      const auto epoch = figures.close(communicator, steps);
      const double loss = (1.0 + ranks) / 2;  // the mean of 1, 2, ... ranks
      EXPECT_DOUBLE_EQ(epoch.train_loss, loss);
      EXPECT_DOUBLE_EQ(epoch.train_accuracy, 0.5);
      EXPECT_EQ(epoch.steps, 3);
      EXPECT_DOUBLE_EQ(epoch.seconds, 1.5);
      EXPECT_DOUBLE_EQ(epoch.lr, 0.3) << "of the last step";
      ASSERT_EQ(steps.size(), 3u);
      EXPECT_EQ(steps[2].update, 3);
      EXPECT_DOUBLE_EQ(steps[2].loss, loss);
      EXPECT_DOUBLE_EQ(steps[0].lr, 0.1);
    });
    for (const auto& error : errors) EXPECT_EQ(error, "");
  }
}

TEST(EpochFigures, BeginAnewAfterEachEpoch) {
  const auto errors = comm::on_ranks(2, {}, [&](comm::Communicator& communicator) {
    EpochFigures figures(4, false);
    std::vector<measure::StepRecord> steps;
    for (const std::int64_t update : {1, 2}) figures.add(step_of(communicator.rank(), update));
    (void)figures.close(communicator, steps);
    figures.add({.update = 3, .local = {.loss = 8, .correct = 2, .samples = 2}, .lr = 1, .seconds = 4});
    const auto second = figures.close(communicator, steps);
    EXPECT_EQ(second.steps, 1);
    EXPECT_DOUBLE_EQ(second.train_loss, 4);
    EXPECT_DOUBLE_EQ(second.train_accuracy, 1);
    EXPECT_DOUBLE_EQ(second.seconds, 4);
    EXPECT_TRUE(steps.empty()) << "kept although nobody asked";
  });
  for (const auto& error : errors) EXPECT_EQ(error, "");
}

}  // namespace
}  // namespace paceline::train
