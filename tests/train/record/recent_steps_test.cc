#include "train/record/recent_steps.h"

#include <gmock/gmock.h>

#include <map>

#include "fixture.h"

namespace paceline::train {
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
