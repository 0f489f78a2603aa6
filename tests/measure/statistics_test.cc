#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "base/rng.h"
#include "measure/statistics.h"

namespace paceline::measure {
namespace {

std::vector<double> one_to(int n) {
  std::vector<double> samples(static_cast<std::size_t>(n));
  std::iota(samples.rbegin(), samples.rend(), 1.0);  // in falling order: nobody may rely on sorted samples
  return samples;
}

TEST(Statistics, MedianIntervalIsThatOfTheBinomialTables) {
  // Ranks of the 95 % interval of the median, e.g. Conover, Practical Nonparametric Statistics, and NIST
  // tables.
  struct Row {
    int n, low, high;
  };
  for (const auto& [n, low, high] : std::vector<Row>{{6, 1, 6},
                                                     {7, 1, 7},
                                                     {8, 1, 8},
                                                     {9, 2, 8},
                                                     {10, 2, 9},
                                                     {11, 2, 10},
                                                     {12, 3, 10},
                                                     {15, 4, 12},
                                                     {17, 5, 13},
                                                     {20, 6, 15},
                                                     {25, 8, 18},
                                                     {30, 10, 21},
                                                     {40, 14, 27},
                                                     {50, 18, 33},
                                                     {100, 40, 61}}) {
    const Estimate e = estimate(one_to(n));
    EXPECT_EQ(e.low, low) << n;
    EXPECT_EQ(e.high, high) << n;
    EXPECT_EQ(e.median, (n + 1) / 2.0) << n;
    EXPECT_EQ(e.n, n);
  }
}

TEST(Statistics, FewSamplesGiveTheExtremesAndOneGivesNoInterval) {
  for (int n = 2; n < 6; ++n) {
    const Estimate e = estimate(one_to(n));
    EXPECT_EQ(e.low, 1);
    EXPECT_EQ(e.high, n);
  }
  const Estimate one = estimate(std::vector{4.0});
  EXPECT_EQ(one.low, 4);
  EXPECT_EQ(one.median, 4);
  EXPECT_EQ(one.high, 4);
  EXPECT_EQ(one.n, 1);
  EXPECT_EQ(estimate({}).n, 0);
  EXPECT_TRUE(std::isnan(estimate({}).median));
}

TEST(Statistics, MedianIntervalCoversTheTrueMedianAsOftenAsItClaims) {
  base::Rng rng(7, base::Purpose::test);
  int covered = 0;
  constexpr int kTrials = 4000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> samples(21);
    for (double& x : samples) x = -std::log(1 - rng.uniform_f64());  // exponential: skewed, median ln 2
    const Estimate e = estimate(samples);
    covered += e.low <= std::log(2.0) && std::log(2.0) <= e.high;
  }
  // For n = 21 the interval (6, 16) has a coverage of 0.9733; 4 standard errors of 4,000 trials are 0.010.
  EXPECT_NEAR(covered / static_cast<double>(kTrials), 0.9733, 0.0103);
}

TEST(Statistics, IntervalsOfManySamplesNeitherOverflowNorVanish) {
  const Estimate e = estimate(one_to(20001));
  EXPECT_NEAR(e.low, 10001 - 0.98 * std::sqrt(20001.0), 2);  // normal approximation: n/2 -+ 1.96 sqrt(n)/2
  EXPECT_NEAR(e.high, 10001 + 0.98 * std::sqrt(20001.0), 2);
}

TEST(Statistics, QuantilesAreLinearBetweenOrderStatistics) {
  const std::vector<double> samples{10, 40, 20, 30};
  EXPECT_DOUBLE_EQ(quantile(samples, 0), 10);
  EXPECT_DOUBLE_EQ(quantile(samples, 0.5), 25);
  EXPECT_DOUBLE_EQ(quantile(samples, 0.9), 37);
  EXPECT_DOUBLE_EQ(quantile(samples, 1), 40);
  EXPECT_TRUE(std::isnan(quantile({}, 0.5)));
}

TEST(Statistics, MissingSamplesAreLeftOut) {
  const double missing = std::numeric_limits<double>::quiet_NaN();
  const Estimate e = estimate(std::vector{3.0, missing, 1.0, 2.0});
  EXPECT_EQ(e.n, 3);
  EXPECT_EQ(e.median, 2);
}

TEST(Statistics, MeanAndDeviationAreTheTextbooks) {
  const std::vector<double> samples{2, 4, 4, 4, 5, 5, 7, 9};
  EXPECT_DOUBLE_EQ(mean(samples), 5);
  EXPECT_DOUBLE_EQ(standard_deviation(samples), std::sqrt(32.0 / 7));
  EXPECT_EQ(standard_deviation(std::vector{3.0}), 0);
}

TEST(Statistics, StandardErrorOfAnAccuracyJoinsTestSizeAndSeeds) {
  EXPECT_NEAR(accuracy_standard_error(std::vector{0.99}, 10000), 0.000995,
              1e-6);  // one run: the test size alone
  const std::vector<double> runs{0.9902, 0.9905, 0.9879};
  const double p = mean(runs), spread = standard_deviation(runs);
  EXPECT_DOUBLE_EQ(accuracy_standard_error(runs, 10000),
                   std::sqrt(p * (1 - p) / 10000 + spread * spread / 3));
}

// Student's table: the quantile that is exceeded on both sides as seldom as two standard errors (4.55 %).
TEST(Statistics, FewDegreesWantMoreThanTwoErrors) {
  EXPECT_EQ(as_rare_as_two_errors(std::numeric_limits<double>::infinity()), 2);
  EXPECT_NEAR(as_rare_as_two_errors(1), 13.968, 0.001);
  EXPECT_NEAR(as_rare_as_two_errors(2), 4.5266, 0.0001);
  EXPECT_NEAR(as_rare_as_two_errors(3), 3.3068, 0.0001);
  EXPECT_NEAR(as_rare_as_two_errors(4), 2.8693, 0.0001);
  EXPECT_NEAR(as_rare_as_two_errors(10), 2.2837, 0.0001);
}

// Printed tables of Student's distribution.
TEST(Statistics, StudentsQuantilesAreThoseOfTables) {
  EXPECT_NEAR(student_quantile(0.975, 1), 12.7062, 0.0001);
  EXPECT_NEAR(student_quantile(0.95, 1), 6.3138, 0.0001);
  EXPECT_NEAR(student_quantile(0.975, 2), 4.3027, 0.0001);
  EXPECT_NEAR(student_quantile(0.95, 4), 2.1318, 0.0001);
  EXPECT_NEAR(student_quantile(0.975, 30), 2.0423, 0.0001);
  EXPECT_NEAR(student_quantile(0.975, std::numeric_limits<double>::infinity()), 1.95996, 0.0001);
  EXPECT_NEAR(student_quantile(0.975, 1.5), 6.0167, 0.0001);  // by the incomplete beta function
  EXPECT_NEAR(student_quantile(0.5, 3), 0, 1e-9);
}

}  // namespace

namespace {

/// A training whose validation accuracies are `accuracies`, epoch by epoch; losses fall with them.
Record training(const std::string& name, int seed, const std::vector<double>& accuracies) {
  Record record;
  record.kind = "search";
  record.variant = name;
  record.settings["seed"] = std::to_string(seed);
  for (const double accuracy : accuracies) {
    const auto number = static_cast<std::int64_t>(record.epochs.size()) + 1;
    EpochRecord epoch{.epoch = number, .updates = 10 * number};
    epoch.validation_accuracy = accuracy;
    epoch.validation_loss = 1 - accuracy;
    record.epochs.push_back(epoch);
  }
  return record;
}

std::vector<Candidate> ranked(const std::vector<Record>& records) {
  std::vector<const Record*> pointers;
  for (const auto& record : records) pointers.push_back(&record);
  auto result = candidates(pointers);
  rank(result);
  return result;
}

std::vector<std::string> names(const std::vector<Candidate>& candidates) {
  std::vector<std::string> result;
  for (const auto& one : candidates) result.push_back(one.name);
  return result;
}

TEST(Ranking, TheFigureIsTheBestEpochsAndOfEqualsThatOfTheLowerLossThenTheFirst) {
  Record record = training("a", 0, {0.5, 0.8, 0.7, 0.8, 0.8});
  record.epochs[3].validation_loss = 0.1;
  record.epochs[4].validation_loss = 0.1;
  EXPECT_EQ(best_validated(record).value().epoch, 4);
  EXPECT_EQ(best_validated(record, 3).value().epoch, 2);
  EXPECT_EQ(best_validated(record, 1).value().updates, 10);
  EXPECT_FALSE(best_validated(record, 0).has_value());
  EXPECT_FALSE(best_validated(Record()).has_value());
}

TEST(Ranking, GoesByMeansOverSeeds) {
  const std::vector<Record> records{training("a", 0, {0.9}), training("b", 0, {0.8}), training("a", 1, {0.6}),
                                    training("b", 1, {0.8})};
  const auto result = ranked(records);
  EXPECT_THAT(names(result), testing::ElementsAre("b", "a"));
  EXPECT_DOUBLE_EQ(result[1].accuracy, 0.75);
  EXPECT_THAT(result[1].accuracies, testing::ElementsAre(0.9, 0.6));
  EXPECT_EQ(&best_record(result[1]), &records[0]);
}

// A rung's record and the longer one that went on from it are one training.
TEST(Ranking, TakesTheLongestRecordOfASeedAndPutsWhatWasKeptForLongerFirst) {
  const std::vector<Record> records{training("a", 0, {0.9}), training("b", 0, {0.5}),
                                    training("b", 0, {0.5, 0.7})};
  const auto result = ranked(records);
  EXPECT_THAT(names(result), testing::ElementsAre("b", "a"));
  EXPECT_EQ(result[0].records.size(), 1u);
  EXPECT_DOUBLE_EQ(result[0].accuracy, 0.7);
}

TEST(Ranking, OneThatStoppedEarlyCameToItsEnd) {
  std::vector<Record> records{training("a", 0, {0.5, 0.6, 0.6, 0.6}), training("b", 0, {0.8, 0.7})};
  EXPECT_THAT(names(ranked(records)), testing::ElementsAre("a", "b"));
  records[1].chosen = {.epoch = 1, .updates = 10, .stopped_early = true};
  EXPECT_THAT(names(ranked(records)), testing::ElementsAre("b", "a"));
  std::vector<Record> worse{training("a", 0, {0.5, 0.6, 0.6, 0.6}), training("b", 0, {0.2, 0.1})};
  worse[1].chosen = {.epoch = 1, .updates = 10, .stopped_early = true};
  EXPECT_THAT(names(ranked(worse)), testing::ElementsAre("a", "b")) << "to have stopped is no merit";
}

// The mean over the seeds that did not fail would flatter it.
TEST(Ranking, WhatFailedWithOneSeedStandsBehindAllOthers) {
  std::vector<Record> records{training("a", 0, {0.9}), training("a", 1, {}), training("b", 0, {0.2})};
  records[1].status = "failed";
  records[1].reason = "the loss is no longer finite";
  const auto result = ranked(records);
  EXPECT_THAT(names(result), testing::ElementsAre("b", "a"));
  EXPECT_EQ(result[1].failure, "the loss is no longer finite");
}

}  // namespace
}  // namespace paceline::measure
