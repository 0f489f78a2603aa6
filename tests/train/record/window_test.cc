#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "measure/spans.h"
#include "train/record/window.h"

namespace paceline::train {
namespace {

using measure::kMostTimedSteps;

/// The lists of one rank that made `steps` steps, folded every `epoch` of them: step i took i + 1 s.
struct StepLists {
  StepLists(std::int64_t steps, std::int64_t epoch, std::size_t ready) : buckets(2) {
    times.begin(steps, result.rank);
    for (auto& bucket : buckets) {
      bucket.ready_s.emplace(ready);
      std::iota(bucket.ready_s->begin(), bucket.ready_s->end(), 1.0);
    }
    std::vector<measure::CommunicationTime> folded;
    for (std::int64_t step = 0; step < steps; ++step) {
      const auto seconds = static_cast<double>(step + 1);
      times.add(result.rank, seconds, seconds / 2);
      folded.push_back({.total = seconds / 4, .transfer = seconds / 8});
      folded.push_back({.total = seconds / 16, .transfer = seconds / 32});
      if ((step + 1) % epoch == 0 || step + 1 == steps) {
        times.add(buckets, folded);
        folded.clear();
      }
    }
    times.end(result);
  }
  StepTimes times;
  WorkerResult result;
  std::vector<measure::BucketRecord> buckets;
};

TEST(StepTimes, KeepEachStepOfAShortWindow) {
  const StepLists run(100, 7, 100);
  EXPECT_EQ(run.result.window_steps, 100);
  EXPECT_EQ(run.result.timed_of, 1);
  EXPECT_EQ(run.result.rank.steps_s, std::nullopt);
  ASSERT_EQ(run.result.rank.step_s.size(), 100u);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(run.result.rank.step_s[i], static_cast<double>(i + 1));
  EXPECT_EQ(run.buckets[1].transfer_s.size(), 100u);
  EXPECT_EQ(run.buckets[1].ready_s->size(), 100u);
}

TEST(StepTimes, OfALongWindowHaveTheSameStepsInAllListsAndABound) {
  constexpr std::int64_t kSteps = 5 * static_cast<std::int64_t>(kMostTimedSteps) + 3;
  for (const std::int64_t epoch : {std::int64_t{1000}, kSteps}) {
    const StepLists run(kSteps, epoch, 4096);
    EXPECT_EQ(run.result.window_steps, kSteps);
    EXPECT_EQ(run.result.timed_of, 8);
    EXPECT_EQ(run.result.rank.steps_s, static_cast<double>(kSteps) * static_cast<double>(kSteps + 1) / 2);
    ASSERT_LE(run.result.rank.step_s.size(), kMostTimedSteps);
    ASSERT_GE(run.result.rank.step_s.size(), kMostTimedSteps / 2);
    EXPECT_LE(run.result.rank.step_s.capacity(), kMostTimedSteps);
    ASSERT_EQ(run.result.rank.own_s->size(), run.result.rank.step_s.size());
    for (const auto& bucket : run.buckets) {
      ASSERT_EQ(bucket.transfer_s.size(), run.result.rank.step_s.size());
      ASSERT_EQ(bucket.duration_s.size(), run.result.rank.step_s.size());
    }
    std::size_t at = 0;
    for (std::int64_t step = 0; step < kSteps; ++step) {
      if (!measure::is_timed(step, 3)) continue;
      const auto seconds = static_cast<double>(step + 1);
      ASSERT_EQ(run.result.rank.step_s[at], seconds);
      ASSERT_EQ((*run.result.rank.own_s)[at], seconds / 2);
      ASSERT_EQ(run.buckets[0].duration_s[at], seconds / 4);
      ASSERT_EQ(run.buckets[1].transfer_s[at], seconds / 32);
      if (step < 4096) {
        ASSERT_EQ((*run.buckets[1].ready_s)[at], seconds);
      }
      ++at;
    }
    EXPECT_EQ(at, run.result.rank.step_s.size());
    EXPECT_EQ(run.buckets[0].ready_s->size(), 4096u / 8);
    EXPECT_EQ(run.buckets[0].ready_s->capacity(), 4096u / 8) << "no room for times of later steps";
  }
}

TEST(StepTimes, OfOneWorkerHaveNoTransfers) {
  WorkerResult result;
  std::vector<measure::BucketRecord> buckets(1);
  buckets[0].ready_s.emplace(8, 0.5);
  StepTimes times;
  times.begin(10, result.rank);
  for (std::size_t i = 0; i <= kMostTimedSteps; ++i) times.add(result.rank, 1, 1);
  times.add(buckets, {});
  times.end(result);
  EXPECT_EQ(result.timed_of, 2);
  EXPECT_EQ(buckets[0].ready_s->size(), 4u);
  EXPECT_TRUE(buckets[0].transfer_s.empty());
  times.begin(10, result.rank);
  times.end(result);
  EXPECT_EQ(result.timed_of, 1);
  EXPECT_EQ(result.window_steps, 0);
  EXPECT_TRUE(result.rank.step_s.empty());
}

}  // namespace
}  // namespace paceline::train
