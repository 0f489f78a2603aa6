#include "analysis/target/target_question.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "analysis/simulated_steps.h"
#include "base/error.h"
#include "measure/ledger.h"

namespace paceline::analysis {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// 400 (1 + 800 / B) steps at batches 64 to 1,024, each batch with a rate of its own.
StepsToTarget five_batches() {
  StepsToTarget made;
  made.model = "resnet18-cifar";
  made.data = "cifar10";
  made.quantity = "accuracy";
  made.value = 0.9;
  std::vector<StepsPoint> points;
  for (const std::int64_t batch : {64, 128, 256, 512, 1024}) {
    const auto size = static_cast<double>(batch);
    points.push_back({.batch = batch, .steps = 400 * (1 + 800 / size)});
    made.rows.push_back({.batch = batch, .rate = 0.1 * std::sqrt(size / 64), .is_in_fit = batch != 128});
  }
  made.fit = fit_steps(points);
  return made;
}

/// Three batches, of one and of two workers.
std::vector<measure::Record> timed_steps() {
  std::vector<measure::Record> records;
  for (const int workers : {1, 2})
    for (const std::int64_t batch : {32, 64, 128})
      for (auto& record : simulate({.workers = workers,
                          .local_batch = batch,
                          .forward = 1e-3 * static_cast<double>(batch),
                          .run_noise = 1e-4},
                                   3))
        records.push_back(std::move(record));
  return records;
}

TEST(TargetQuestion, AsksWithTheStepsOfTheForecast) {
  const auto records = timed_steps();
  const auto cells = make_cells(records);
  const auto model = step_model(cells);
  ForecastRequest request;
  request.workers = {1, 2, 4};
  const auto made = target_question(five_batches(), model, request);
  const auto& question = made.question;
  EXPECT_NEAR(question.steps.s_min, 400, 0.1);
  EXPECT_NEAR(question.steps.critical_batch, 800, 0.5);
  EXPECT_EQ(question.from_batch, 64);
  EXPECT_EQ(question.to_batch, 1024);
  EXPECT_THAT(question.local_batches, ElementsAre(24, 32, 48, 64, 96, 128, 192))
      << "1.5 times beyond 32 to 128";
  request.step = {.mode = Mode::weak, .batch = 64};
  const auto expected = forecast(model, request);
  for (const std::int64_t workers : {1, 2}) {
    const auto step = question.step_s(workers, 64);
    ASSERT_TRUE(step);
    EXPECT_DOUBLE_EQ(step->value, point_at(expected, workers)->step_s.value);
    EXPECT_DOUBLE_EQ(step->high, point_at(expected, workers)->step_s.high);
  }
  EXPECT_FALSE(question.step_s(2, 65)) << "not tried";
}

// No local batch of 190 is among those that are tried otherwise.
TEST(TargetQuestion, TriesOneGlobalBatchAlone) {
  const auto records = timed_steps();
  const auto cells = make_cells(records);
  const auto model = step_model(cells);
  ForecastRequest request;
  request.workers = {1, 2, 5};
  const auto question = target_question(five_batches(), model, request, 190).question;
  EXPECT_THAT(question.local_batches, ElementsAre(38, 95, 190));
  const auto found = answer(question);
  ASSERT_EQ(found.points.size(), 2U) << "of five workers nothing was measured";
  for (const auto& point : found.points) {
    EXPECT_EQ(point.batch.value, 190);
    EXPECT_NEAR(point.steps.value, 400 * (1 + 800 / 190.0), 1);
    EXPECT_FALSE(point.is_at_end) << "no other was to be tried";
  }
  try {
    (void)target_question(five_batches(), model, request, 2048);
    ADD_FAILURE();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("--global-batch 2048 is outside of the batches that were trained, 64 to 1024"));
  }
}

TEST(TargetQuestion, SharesAnEvaluationAmongTheWorkers) {
  const auto records = timed_steps();
  const auto cells = make_cells(records);
  auto target = five_batches();
  auto trained = golden::make_training({.workers = 2, .global_batch = 128});
  for (auto& rank : trained.ranks) rank.phases[static_cast<std::size_t>(measure::Phase::evaluation)] = 6;
  trained.evaluations.emplace(4);
  auto disturbed = trained;  // its evaluations took twice as long
  for (auto& rank : disturbed.ranks) rank.phases[static_cast<std::size_t>(measure::Phase::evaluation)] = 12;
  target.records = {&trained, &trained, &trained, &disturbed};
  ForecastRequest request;
  request.workers = {1};
  const auto question = target_question(target, step_model(cells), request).question;
  EXPECT_DOUBLE_EQ(question.evaluation_s.value, 2 * 6 / 4.0);
  EXPECT_DOUBLE_EQ(question.evaluation_s.low, 2 * 6 / 4.0);
  EXPECT_GT(question.evaluation_s.high, 1.5 * 2 * 6 / 4.0);
  EXPECT_DOUBLE_EQ(question.samples_between_evaluations, 50000);
}

// Rates rise as the root of the batch, so in logarithms they lie on one line.
TEST(TargetQuestion, RatesLieBetweenThoseOfTheCurve) {
  const auto target = five_batches();
  EXPECT_DOUBLE_EQ(rate_at(target, 64), 0.1);
  EXPECT_NEAR(rate_at(target, 128), 0.1 * std::sqrt(2.0), 1e-12) << "its own is not in the fit";
  EXPECT_NEAR(rate_at(target, 96), 0.1 * std::sqrt(1.5), 1e-12);
  EXPECT_DOUBLE_EQ(rate_at(target, 32), 0.1);
  EXPECT_DOUBLE_EQ(rate_at(target, 4096), 0.4);
  EXPECT_EQ(rate_at({}, 64), 0);
}

TEST(TargetQuestion, RefusesStepsOfOtherBatches) {
  const auto records = timed_steps();
  const auto cells = make_cells(records);
  auto target = five_batches();
  target.fit->from_batch = 1;
  target.fit->to_batch = 16;
  ForecastRequest request;
  request.workers = {1};
  try {
    (void)target_question(target, step_model(cells), request);
    ADD_FAILURE();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("time no step of a batch of the curve, 1 to 16"));
  }
}

}  // namespace
}  // namespace paceline::analysis
