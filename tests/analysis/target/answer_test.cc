#include "analysis/target/answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

namespace paceline::analysis {
namespace {

using testing::ElementsAre;

constexpr double kLeastSteps = 1000, kCriticalBatch = 1600;
/// A step of 10 ms and 0.1 ms for each sample of the local batch.
constexpr double kFixed_s = 0.01, kSample_s = 1e-4;

std::vector<std::int64_t> up_to(std::int64_t last) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(last));
  std::iota(all.begin(), all.end(), 1);
  return all;
}

Predicted exactly(double value) { return {.value = value, .low = value, .high = value}; }

/// Every local batch up to 2,000 on 1, 4 and 16 workers, which exchange in no time.
TargetQuestion usual_question() {
  TargetQuestion asked;
  asked.steps = {.s_min = kLeastSteps, .critical_batch = kCriticalBatch};
  asked.from_batch = 1;
  asked.to_batch = 1e6;
  asked.workers = {1, 4, 16};
  asked.local_batches = up_to(2000);
  asked.step_s = [](std::int64_t, std::int64_t local) {
    return exactly(kFixed_s + kSample_s * static_cast<double>(local));
  };
  return asked;
}

// S_min (1 + B_c / B) (t_0 + t_1 B / N) is least at B = sqrt(B_c N t_0 / t_1), where it is
// S_min (sqrt(t_0) + sqrt(t_1 B_c / N))^2.
TEST(Answer, FindsTheBatchOfTheClosedForm) {
  const auto found = answer(usual_question());
  ASSERT_EQ(found.points.size(), 3u);
  for (const auto& point : found.points) {
    const auto workers = static_cast<double>(point.workers);
    EXPECT_DOUBLE_EQ(point.batch.value, std::sqrt(kCriticalBatch * workers * kFixed_s / kSample_s));
    const double root = std::sqrt(kFixed_s) + std::sqrt(kSample_s * kCriticalBatch / workers);
    EXPECT_NEAR(point.time_s.value, kLeastSteps * root * root, 1e-9);
    EXPECT_NEAR(point.cost.value, workers * point.time_s.value / 3600, 1e-12);
    EXPECT_DOUBLE_EQ(point.time_s.low, point.time_s.high);
    EXPECT_FALSE(point.is_at_end);
    EXPECT_TRUE(point.is_on_front) << "each is faster and dearer than the one before";
  }
  EXPECT_EQ(found.fastest->workers, 16);
  EXPECT_EQ(found.cheapest->workers, 1);
  EXPECT_FALSE(found.in_time);
  EXPECT_FALSE(found.for_budget);
}

// Of evaluations after each V samples there are S(B) B / V, each of e / N: S_min (B + B_c) e / (V N).
TEST(Answer, AddsEvaluationsSharedByTheWorkers) {
  auto asked = usual_question();
  asked.workers = {4};
  asked.local_batches = {100, 200};
  asked.evaluation_s = {.value = 8, .low = 8, .high = 8};
  asked.samples_between_evaluations = 50000;
  const auto found = answer(asked).points[0];
  const double training = kLeastSteps * (1 + kCriticalBatch / 400) * (kFixed_s + 100 * kSample_s);
  const double evaluations = kLeastSteps * (400 + kCriticalBatch) * 8 / (50000.0 * 4);
  EXPECT_DOUBLE_EQ(found.batch.value, 400) << "without evaluations 800 takes 90 s, not 100";
  EXPECT_NEAR(found.evaluations_s, evaluations, 1e-9);
  EXPECT_NEAR(found.time_s.value, training + evaluations, 1e-9);
}

// A step that grows with the workers: beyond some of them more are slower and dearer.
TEST(Answer, LeavesTheDominatedOffTheFront) {
  auto asked = usual_question();
  asked.workers = {1, 2, 4, 8, 16};
  asked.step_s = [](std::int64_t workers, std::int64_t local) {
    return exactly(kSample_s * static_cast<double>(local) + 0.004 * static_cast<double>(workers * workers));
  };
  const auto found = answer(asked);
  std::vector<std::int64_t> front;
  for (const auto& point : found.points)
    if (point.is_on_front) front.push_back(point.workers);
  EXPECT_EQ(front.front(), found.cheapest->workers);
  EXPECT_EQ(front.back(), found.fastest->workers);
  EXPECT_LT(front.back(), 16);
  for (const auto& point : found.points) {
    bool is_beaten = false;
    for (const auto& other : found.points)
      is_beaten |= other.time_s.value < point.time_s.value && other.cost.value < point.cost.value;
    EXPECT_EQ(point.is_on_front, !is_beaten) << point.workers;
  }
}

// By the closed form of one worker 1000 (0.1 + 0.4)^2 = 250 s, of four 90 s, of sixteen 40 s;
// worker-hours 250, 360 and 640 over 3,600.
TEST(Answer, KeepsDeadlineAndBudget) {
  auto asked = usual_question();
  asked.deadline_s = 100;
  asked.budget = 500 / 3600.0;
  auto found = answer(asked);
  ASSERT_TRUE(found.in_time && found.for_budget);
  EXPECT_EQ(found.in_time->workers, 4);
  EXPECT_EQ(found.for_budget->workers, 4);
  EXPECT_TRUE(found.in_time->is_sure);
  asked.deadline_s = 39;
  asked.budget = 249 / 3600.0;
  found = answer(asked);
  EXPECT_FALSE(found.in_time);
  EXPECT_FALSE(found.for_budget);
}

// Nodes of eight for 16 an hour: up to eight workers all cost the same hour.
TEST(Answer, PaysByItsPrice) {
  auto asked = usual_question();
  asked.workers = {1, 8, 16};
  asked.price_an_hour = [](std::int64_t workers) { return 16.0 * static_cast<double>((workers + 7) / 8); };
  const auto found = answer(asked);
  EXPECT_EQ(found.cheapest->workers, 8);
  EXPECT_NEAR(found.at(16)->cost.value, 32 * found.at(16)->time_s.value / 3600, 1e-12);
  EXPECT_FALSE(found.at(1)->is_on_front) << "slower and dearer than eight";
}

// Steps up to 20 % more or fewer at any batch, and a step of 10 % more or less: joined in quadrature.
TEST(Answer, JoinsTheIntervalsOfStepsAndStep) {
  auto asked = usual_question();
  asked.workers = {4, 16};
  asked.possible = {{.s_min = kLeastSteps / 1.2, .critical_batch = kCriticalBatch},
                    {.s_min = kLeastSteps * 1.2, .critical_batch = kCriticalBatch}};
  asked.step_s = [](std::int64_t, std::int64_t local) {
    const double value = kFixed_s + kSample_s * static_cast<double>(local);
    return Predicted{.value = value, .low = value / 1.1, .high = value * 1.1};
  };
  asked.deadline_s = 100;
  asked.budget = 400 / 3600.0;
  const auto found = answer(asked);
  const auto& four = *found.at(4);
  const double half = std::hypot(std::log(1.2), std::log(1.1));
  EXPECT_NEAR(four.time_s.value, 90, 1e-9);
  EXPECT_NEAR(std::log(four.time_s.high / 90), half, 1e-9);
  EXPECT_NEAR(std::log(90 / four.time_s.low), half, 1e-9);
  EXPECT_NEAR(four.cost.high / four.cost.value, four.time_s.high / four.time_s.value, 1e-12);
  EXPECT_DOUBLE_EQ(four.batch.low, four.batch.high) << "a factor on all of S(B) moves no batch";
  // 100 s are kept by four workers, or by sixteen where the steps are 20 % more (108 s).
  EXPECT_EQ(found.in_time->workers, 4);
  EXPECT_EQ(found.in_time->low, 4);
  EXPECT_EQ(found.in_time->high, 16);
  EXPECT_FALSE(found.in_time->is_sure);
  EXPECT_FALSE(found.for_budget->is_sure) << "400 worker-seconds, 360 of which are used, or 432";
}

// A critical batch of a quarter or of four times moves the best batch by the root of that.
TEST(Answer, GivesTheBatchesOfOtherCurves) {
  auto asked = usual_question();
  asked.workers = {4};
  asked.possible = {{.s_min = kLeastSteps, .critical_batch = kCriticalBatch / 4},
                    {.s_min = kLeastSteps, .critical_batch = kCriticalBatch * 4}};
  const auto found = answer(asked).points[0];
  EXPECT_DOUBLE_EQ(found.batch.value, 800);
  EXPECT_DOUBLE_EQ(found.batch.low, 400);
  EXPECT_DOUBLE_EQ(found.batch.high, 1600);
}

TEST(Answer, StaysInTheReachOfTheFit) {
  auto asked = usual_question();
  asked.workers = {1, 4, 16, 600};
  asked.from_batch = 64;
  asked.to_batch = 512;
  const auto found = answer(asked);
  EXPECT_THAT(found.impossible, ElementsAre(600)) << "one sample each is already more";
  EXPECT_DOUBLE_EQ(found.at(1)->batch.value, 400);
  EXPECT_FALSE(found.at(1)->is_at_end);
  EXPECT_DOUBLE_EQ(found.at(16)->batch.value, 512);
  EXPECT_TRUE(found.at(16)->is_at_end);
  EXPECT_EQ(found.at(600), nullptr);
}

TEST(Answer, LeavesOutWhatDoesNotFit) {
  auto asked = usual_question();
  asked.step_s = [](std::int64_t workers, std::int64_t local) -> std::optional<Predicted> {
    if (local > 128 || workers == 1) return std::nullopt;
    return exactly(kFixed_s + kSample_s * static_cast<double>(local));
  };
  const auto found = answer(asked);
  EXPECT_THAT(found.impossible, ElementsAre(1));
  EXPECT_EQ(found.at(4)->local_batch, 128);
  EXPECT_TRUE(found.at(4)->is_at_end);
}

TEST(Answer, IsEmptyWhereNothingIsPossible) {
  auto asked = usual_question();
  asked.deadline_s = 100;
  asked.step_s = [](std::int64_t, std::int64_t) { return std::optional<Predicted>(); };
  const auto found = answer(asked);
  EXPECT_TRUE(found.points.empty());
  EXPECT_FALSE(found.fastest || found.cheapest || found.in_time || found.for_budget);
}

}  // namespace
}  // namespace paceline::analysis
