#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "comm/ranks.h"
#include "train/fixture.h"
#include "train/record/epoch_figures.h"

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

namespace {

using measure::Phase;
using measure::TimelineSpan;

class LastStepsOfARun : public TrainingTest {
 protected:
  /// Seconds of each rank by phase.
  static std::vector<std::map<Phase, double>> seconds_of(const measure::Record& record) {
    std::vector<std::map<Phase, double>> seconds;
    for (const auto& rank : measure::timelines(record.last_steps.value())) {
      auto& phases = seconds.emplace_back();
      for (const auto& span : rank.spans)
        if (span.lane == TimelineSpan::Lane::phase)
          phases[static_cast<Phase>(span.what)] += span.end_s - span.begin_s;
    }
    return seconds;
  }

  /// Buckets and sums of statistics of each rank.
  static std::size_t collectives_of(const measure::Record& record, bool of_statistics) {
    std::size_t count = 0;
    for (const auto& rank : record.last_steps->ranks)
      for (const int bucket : rank.bucket)
        count += (bucket == TimelineSpan::kStatistics) == of_statistics ? 1 : 0;
    return count;
  }
};

TEST_F(LastStepsOfARun, OfAWindowOfThreeAreItsLedgerWithWaitingAndTransferApart) {
  auto options = small();
  options.workers = 2;
  options.threads = 1;
  options.steps = 0;
  options.warmup_steps = 1;
  options.window_steps = 3;
  const auto record = train(options);
  ASSERT_EQ(record.last_steps.value().steps, 3);
  const auto seconds = seconds_of(record);
  ASSERT_EQ(seconds.size(), 2U);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const auto booked = [&](Phase phase) {
      return record.ranks[rank].phases[static_cast<std::size_t>(phase)];
    };
    for (const auto phase : {Phase::data_wait, Phase::forward, Phase::backward, Phase::update,
                             Phase::exposed_transfer, Phase::exposed_wait}) {
      const auto found = seconds[rank].find(phase);
      EXPECT_NEAR(found == seconds[rank].end() ? 0 : found->second, booked(phase), 2e-6) << name(phase);
    }
  }
  EXPECT_EQ(collectives_of(record, false), 2 * 3 * record.buckets.size());
  EXPECT_FALSE(record.last_steps->ranks[0].clock_error_us) << "threads of one process share a clock";
}

TEST_F(LastStepsOfARun, OfALongWindowAreItsEnd) {
  auto options = small();
  options.workers = 2;
  options.threads = 1;
  options.steps = 0;
  options.window_steps = 150;  // more spans than are kept
  const auto record = train(options);
  ASSERT_EQ(record.last_steps.value().steps, 3);
  const auto& steps = record.ranks[0].step_s;
  double last = 0, shown = 0;
  for (std::size_t i = steps.size() - 3; i < steps.size(); ++i) last += steps[i];
  const auto phases = seconds_of(record).at(0);
  for (const auto& [phase, seconds] : phases) shown += seconds;
  EXPECT_NEAR(shown, last, 0.05 * last + 1e-4) << "but for what lies between two steps";
}

TEST_F(LastStepsOfARun, OfATrainingAreThoseOfItsLastEpoch) {
  auto options = small();
  options.steps = 8;  // an epoch of 6, and 2 more
  const auto record = train(options);
  EXPECT_EQ(record.last_steps.value().steps, 2);
  const auto seconds = seconds_of(record).at(0);
  EXPECT_GT(seconds.at(Phase::forward), 0);
  EXPECT_FALSE(seconds.contains(Phase::evaluation));
  EXPECT_EQ(collectives_of(record, false), 0U) << "one worker";
}

TEST_F(LastStepsOfARun, HoldTheStatisticsOfASynchronisedBatchNorm) {
  auto options = small();
  options.workers = 2;
  options.threads = 1;
  options.batch_norm = engine::BatchNormMode::synchronised;
  const auto record = train(options);
  EXPECT_GT(collectives_of(record, true), 0U);
  EXPECT_EQ(collectives_of(record, true) % (2 * static_cast<std::size_t>(record.last_steps->steps)), 0U);
}

}  // namespace
}  // namespace paceline::train
