#include "analysis/target/steps_to_target.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "golden/records.h"

namespace paceline::analysis {
namespace {

using golden::make_training;
using measure::Record;
using testing::HasSubstr;

constexpr double kSMin = 500, kCritical = 300;
constexpr std::int64_t kBatches[]{32, 64, 128, 256, 512, 1024, 2048};

double steps_of(double batch) { return kSMin * (1 + kCritical / batch); }

TEST(StepsFit, GivesBackTheCurveOfItsPoints) {
  std::vector<StepsPoint> points;
  for (const auto batch : kBatches)
    points.push_back({.batch = batch, .steps = steps_of(static_cast<double>(batch))});
  const auto fit = fit_steps(points);
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->s_min.median, kSMin, 1e-4 * kSMin);
  EXPECT_NEAR(fit->critical_batch.median, kCritical, 1e-4 * kCritical);
  EXPECT_LT(fit->rms, 1e-6);
  EXPECT_EQ(fit->from_batch, 32);
  EXPECT_EQ(fit->to_batch, 2048);
  EXPECT_NEAR(fit->steps_at(100).median, 2000, 0.2);
  EXPECT_TRUE(fit->is_within(2048));
  EXPECT_FALSE(fit->is_within(2049));
}

TEST(StepsFit, NeedsFourBatchesAndABend) {
  std::vector<StepsPoint> three{{32, 100}, {64, 70}, {128, 50}, {128, 51}};
  EXPECT_FALSE(fit_steps(three)) << "three batches";
  EXPECT_FALSE(fit_steps(std::vector<StepsPoint>{{32, 100}, {64, 100}, {128, 100}, {256, 100}})) << "flat";
  EXPECT_FALSE(fit_steps(std::vector<StepsPoint>{{32, 100}, {64, 110}, {128, 120}, {256, 130}})) << "rising";
  EXPECT_FALSE(fit_steps(std::vector<StepsPoint>{{32, 800}, {64, 400}, {128, 200}, {256, 100}})) << "1 / B";
}

/// Seeds with this spread in logarithms; `batch_spread`: what all seeds of a batch have in common.
std::vector<StepsPoint> drawn(std::mt19937_64& random, std::size_t batches, double spread,
                              double batch_spread) {
  std::normal_distribution<double> normal;
  std::vector<StepsPoint> points;
  for (std::size_t i = 0; i < batches; ++i) {
    const double common = batch_spread * normal(random);
    for (int seed = 0; seed < 3; ++seed)
      points.push_back(
          {.batch = kBatches[i],
           .steps = steps_of(static_cast<double>(kBatches[i])) * std::exp(common + spread * normal(random))});
  }
  return points;
}

// The scatter of the batches is a second source of the interval: seeds alone know nothing of rates that are
// tuned by a factor of two only.
TEST(StepsFit, IntervalsHoldTheTruth) {
  constexpr int kDraws = 400;
  for (const auto& [spread, common] : {std::pair{0.05, 0.0}, {0.02, 0.05}}) {
    std::mt19937_64 random(7);
    int critical = 0, s_min = 0, inside = 0, beyond = 0, narrow = 0;
    for (int i = 0; i < kDraws; ++i) {
      const auto fit = fit_steps(drawn(random, std::size(kBatches), spread, common));
      ASSERT_TRUE(fit);
      const auto holds = [](const Estimate& one, double truth) {
        return one.low <= truth && truth <= one.high;
      };
      critical += holds(fit->critical_batch, kCritical) ? 1 : 0;
      s_min += holds(fit->s_min, kSMin) ? 1 : 0;
      inside += holds(fit->steps_at(200), steps_of(200)) ? 1 : 0;
      beyond += holds(fit->steps_at(8192), steps_of(8192)) ? 1 : 0;
      narrow += fit->critical_batch.high < 2 * fit->critical_batch.low ? 1 : 0;
    }
    std::printf(
        "spread %.2f + %.2f: of %d intervals %d hold B_c, %d S_min, %d S(200), %d S(8192); %d are narrow\n",
        spread, common, kDraws, critical, s_min, inside, beyond, narrow);
    for (const int held : {critical, s_min, inside, beyond}) EXPECT_GE(held, 0.93 * kDraws);
    EXPECT_GE(narrow, kDraws / 2) << "intervals that hold everything say nothing";
  }
}

// Below B_c the steps fall as 1 / B, so that nothing bounds it from above.
TEST(StepsFit, SaysThatABendIsNotBounded) {
  std::mt19937_64 random(3);
  int open = 0;
  for (int i = 0; i < 50; ++i)
    if (const auto fit = fit_steps(drawn(random, 4, 0.25, 0)); fit && std::isinf(fit->critical_batch.high)) {
      ++open;
      EXPECT_EQ(fit->s_min.low, 0);
      EXPECT_TRUE(std::isfinite(fit->steps_at(64).high));
    }
  EXPECT_GT(open, 5);
}

// 130 runs of ResNet-50 to 75.9 %, ten batches from 1,632 to 67,840.
TEST(StepsFit, ErrsBeyondItsReachOnPublishedPoints) {
  const char* given = std::getenv("PACELINE_DATA");
  const auto file =
      (given != nullptr ? std::filesystem::path(given)
                        : std::filesystem::path(PACELINE_SOURCE_DIR) / ".." / "shared" / "data") /
      "published" / "mlperf-resnet50-reference-epochs.csv";
  if (!std::filesystem::exists(file))
    GTEST_SKIP() << file << " is not there; set PACELINE_DATA to the data's directory";
  constexpr double kImages = 1281167;
  constexpr std::int64_t kReach = 13056;
  std::vector<StepsPoint> all, small;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || std::isdigit(static_cast<unsigned char>(line[0])) == 0) continue;
    const auto batch = std::stoll(line);
    const double epochs = std::stod(line.substr(line.find(',') + 1));
    all.push_back({.batch = batch, .steps = epochs * kImages / static_cast<double>(batch)});
    if (batch <= kReach) small.push_back(all.back());
  }
  const auto whole = fit_steps(all), part = fit_steps(small);
  ASSERT_TRUE(whole && part);
  std::printf("all: B_c %.0f [%.0f, %.0f], rms %.1f %%; up to %ld: B_c %.0f [%.0f, %.0f]\n",
              whole->critical_batch.median, whole->critical_batch.low, whole->critical_batch.high,
              100 * whole->rms, static_cast<long>(part->to_batch), part->critical_batch.median,
              part->critical_batch.low, part->critical_batch.high);
  EXPECT_LE(whole->rms, 0.04);
  EXPECT_NEAR(whole->critical_batch.median, 47000, 1000);
  EXPECT_EQ(part->to_batch, kReach);
  for (const std::int64_t batch : {32768, 49152, 58880, 65536, 67840}) {
    double logs = 0, runs = 0;
    for (const auto& point : all)
      if (point.batch == batch) logs += std::log(point.steps), ++runs;
    const double error = part->steps_at(static_cast<double>(batch)).median / std::exp(logs / runs) - 1;
    EXPECT_GT(error, 0.11) << batch;
    EXPECT_LT(error, 0.18) << batch;
    EXPECT_FALSE(part->is_within(static_cast<double>(batch)));
  }
}

/// A training of a study that compares batches; `update` 0: it did not reach the target.
Record training(std::int64_t batch, double rate, int seed, std::int64_t update) {
  Record record = make_training({.variant = fmt::format("B {}, lr {:g}", batch, rate),
                                 .global_batch = batch,
                                 .seed = seed,
                                 .lr = rate,
                                 .accuracies = {0.5, 0.9}});
  record.settings["target"] = "accuracy=0.8";
  record.settings["evaluate-steps"] = "5";
  record.target = {.quantity = "accuracy", .value = 0.8};
  if (update > 0) record.target->update = update;
  return record;
}

/// Four rates for each batch, the best one inside; two seeds, 10 % apart.
std::vector<Record> study() {
  std::vector<Record> records;
  for (const std::int64_t batch : {32, 64, 128, 256, 512})
    for (const auto& [rate, factor] : {std::pair{0.05, 1.6}, {0.1, 1.0}, {0.2, 1.3}, {0.4, 0.0}})
      for (int seed = 0; seed < 2; ++seed)
        records.push_back(
            training(batch, rate, seed,
                     std::llround(factor * (1 + 0.1 * seed) * steps_of(static_cast<double>(batch)))));
  return records;
}

TEST(StepsToTarget, TakesTheBestRateOfEachBatch) {
  const auto records = study();
  const auto found = steps_to_target(make_cells(records));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].quantity, "accuracy");
  EXPECT_DOUBLE_EQ(found[0].value, 0.8);
  EXPECT_EQ(found[0].evaluated_every, 5);
  EXPECT_EQ(found[0].records.size(), records.size());
  EXPECT_EQ(found[0].differs, "");
  ASSERT_EQ(found[0].rows.size(), 5U);
  const auto& row = found[0].rows[1];
  EXPECT_EQ(row.batch, 64);
  EXPECT_EQ(row.rate, 0.1);
  EXPECT_FALSE(row.rate_at_end);
  EXPECT_TRUE(row.is_in_fit);
  EXPECT_EQ(row.seeds, 2);
  EXPECT_EQ(row.failed, 0);
  EXPECT_NEAR(row.steps, std::sqrt(1.1) * steps_of(64), 1);
  EXPECT_LT(row.low, row.steps);
  ASSERT_TRUE(found[0].fit) << found[0].no_fit;
  EXPECT_NEAR(found[0].fit->critical_batch.median, kCritical, 0.01 * kCritical);
  EXPECT_EQ(found[0].fit->from_batch, 32);
}

TEST(StepsToTarget, LeavesAnEndOfTheGridOut) {
  auto records = study();
  // Without the lowest rate the best one is an end; one that diverged on the other side is a neighbour.
  std::erase_if(records,
                [](const Record& one) { return one.global_batch == 512 && one.learning_rate.peak < 0.1; });
  auto found = steps_to_target(make_cells(records));
  EXPECT_TRUE(found[0].rows.back().rate_at_end);
  EXPECT_FALSE(found[0].rows.back().is_in_fit);
  ASSERT_TRUE(found[0].fit);
  EXPECT_EQ(found[0].fit->to_batch, 256);
  std::erase_if(records,
                [](const Record& one) { return one.global_batch == 256 && one.learning_rate.peak < 0.1; });
  found = steps_to_target(make_cells(records));
  EXPECT_FALSE(found[0].fit);
  EXPECT_THAT(found[0].no_fit, HasSubstr("3 of 5 have one"));
}

TEST(StepsToTarget, PrefersARateThatEverySeedReaches) {
  auto records = study();
  for (auto& record : records)
    if (record.global_batch == 128 && record.learning_rate.peak == 0.1 && record.settings["seed"] == "1") {
      record.status = "failed";  // as a study keeps a training that diverged
      record.reason = "the loss is not finite";
      record.target.reset();
      record.learning_rate = {};
    }
  const auto found = steps_to_target(make_cells(records));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].rows[2].rate, 0.2);
  EXPECT_EQ(found[0].rows[2].failed, 0);
}

TEST(StepsToTarget, KeepsOtherRulesApart) {
  auto records = study();
  auto others = study();
  for (auto& record : others) record.settings["optimizer"] = "lars";
  records.insert(records.end(), others.begin(), others.end());
  // Other seeds of the same batch, and other numbers of workers, are of one curve.
  for (auto& record : records) record.settings["threads"] = std::to_string(1 + record.repeat);
  const auto found = steps_to_target(make_cells(records));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].differs, "optimizer sgd");
  EXPECT_EQ(found[1].differs, "optimizer lars");
}

TEST(StepsToTarget, IsEmptyWithoutATarget) {
  const std::vector<Record> records{make_training({.accuracies = {0.5}})};
  EXPECT_TRUE(steps_to_target(make_cells(records)).empty());
}

}  // namespace
}  // namespace paceline::analysis
