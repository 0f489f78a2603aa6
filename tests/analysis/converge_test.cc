#include "analysis/converge.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "golden/records.h"

namespace paceline::analysis {
namespace {

using golden::make_training;
using measure::Record;

std::vector<Record> three_variants(double baseline, double large, double remedy) {
  return {
      make_training({.accuracies = {0.3, 0.5, baseline}}),
      make_training(
          {.variant = "large batch", .workers = 2, .global_batch = 2048, .accuracies = {0.2, 0.3, large}}),
      make_training({.variant = "+ linear scaling",
                     .workers = 2,
                     .global_batch = 2048,
                     .factor = 16,
                     .rule = "linear",
                     .accuracies = {0.2, 0.3, remedy}})};
}

TEST(Convergence, SaysWhatWasLostAndWhatARemedyGivesBack) {
  const auto records = three_variants(0.70, 0.50, 0.65);
  const auto cells = make_cells(records);
  const auto result = convergence(cells);
  ASSERT_TRUE(result && result->baseline && result->large);
  EXPECT_EQ(*result->baseline, 0U);
  EXPECT_EQ(*result->large, 1U);
  EXPECT_NEAR(result->variants[1].to_baseline->value, -0.20, 1e-12);
  EXPECT_NEAR(*result->variants[2].given_back, 0.75, 1e-9);
  EXPECT_FALSE(result->variants[0].given_back.has_value()) << "the baseline is no remedy";
}

TEST(Convergence, ComparesARemedyWithTheLossOfItsOwnBatch) {
  std::vector<Record> records{make_training({.accuracies = {0.70}})};
  for (const int workers : {2, 4}) {
    const std::int64_t batch = 128 * workers;
    records.push_back(make_training({.variant = fmt::format("{} workers, kept rate", workers),
                                     .workers = workers,
                                     .global_batch = batch,
                                     .accuracies = {0.70 - 0.1 * workers}}));
    records.push_back(make_training({.variant = fmt::format("{} workers, linear scaling", workers),
                                     .workers = workers,
                                     .global_batch = batch,
                                     .factor = static_cast<double>(workers),
                                     .rule = "linear",
                                     .accuracies = {0.70 - 0.05 * workers}}));
  }
  const auto cells = make_cells(records);
  const auto result = convergence(cells);
  ASSERT_EQ(result->variants.size(), 5U);
  EXPECT_EQ(result->variants[2].large, 1U);
  EXPECT_NEAR(*result->variants[2].given_back, 0.5, 1e-9);
  EXPECT_EQ(result->variants[4].large, 3U);
  EXPECT_NEAR(*result->variants[4].given_back, 0.5, 1e-9);
  EXPECT_FALSE(result->variants[1].large.has_value()) << "it is the one without remedy";
}

TEST(Convergence, GivesNothingBackOfALossThatIsNoise) {
  const auto records = three_variants(0.7000, 0.6990, 0.7010);
  const auto cells = make_cells(records);
  const auto result = convergence(cells);
  EXPECT_TRUE(result->variants[1].to_baseline->is_noise());
  EXPECT_FALSE(result->variants[2].given_back.has_value());
}

TEST(Convergence, JoinsTheErrorsOfBothAccuracies) {
  const auto one = difference(0.9, 0.003, 0.95, 0.004);
  EXPECT_NEAR(one.value, 0.05, 1e-12);
  EXPECT_NEAR(one.standard_error, 0.005, 1e-12);
  EXPECT_STREQ(one.word(), "clear");
  EXPECT_STREQ(difference(0.9, 0.003, 0.904, 0.004).word(), "noise");
  EXPECT_STREQ(difference(0.9, 0.003, 0.907, 0.004).word(), "weak evidence");
}

TEST(Convergence, CallsNothingClearFromOneSeed) {
  const auto one = three_variants(0.70, 0.50, 0.65);
  const auto cells = make_cells(one);
  EXPECT_STREQ(convergence(cells)->variants[1].to_baseline->word(), "beyond the test set's error; one seed");
  auto two = one;
  for (auto record : one) {
    record.settings["seed"] = std::to_string(1);
    two.push_back(std::move(record));
  }
  const auto joined = make_cells(two);
  EXPECT_STREQ(convergence(joined)->variants[1].to_baseline->word(), "clear");
}

/// Trainings of a variant whose seeds lie this far apart.
void add_seeds(std::vector<Record>& records, const std::string& variant, std::vector<double> accuracies) {
  for (std::size_t seed = 0; seed < accuracies.size(); ++seed)
    records.push_back(make_training({.variant = variant,
                                     .global_batch = variant == "baseline" ? 128 : 2048,
                                     .seed = static_cast<int>(seed),
                                     .accuracies = {accuracies[seed]}}));
}

// Two true accuracies alike, seeds of two points apart: two standard errors from two seeds each are exceeded
// by chance in one case of ten, not of twenty.
TEST(Convergence, AsksForMoreOfFewSeedsThatLieFarApart) {
  const auto between = [](std::vector<double> baseline, std::vector<double> large) {
    std::vector<Record> records;
    add_seeds(records, "baseline", std::move(baseline));
    add_seeds(records, "large batch", std::move(large));
    const auto cells = make_cells(records);
    return *convergence(cells)->variants[1].to_baseline;
  };
  const auto two = between({0.70, 0.72}, {0.66, 0.68});
  EXPECT_GT(std::abs(two.value), 2 * two.standard_error);
  EXPECT_STREQ(two.word(), "weak evidence");
  EXPECT_STREQ(between({0.70, 0.72}, {0.58, 0.60}).word(), "clear");
  const auto five = between({0.70, 0.72, 0.71, 0.70, 0.72}, {0.66, 0.68, 0.67, 0.66, 0.68});
  EXPECT_STREQ(five.word(), "clear");
  // Where the test set makes the error, which is known, two of them are enough.
  const auto close = between({0.7000, 0.7001}, {0.6860, 0.6861});
  EXPECT_GT(close.degrees, 1000);
  EXPECT_STREQ(close.word(), "clear");
}

TEST(Convergence, TakesTheMeanOverSeedsAndItsSpread) {
  const std::vector<Record> records{make_training({.seed = 0, .accuracies = {0.70}}),
                                    make_training({.seed = 1, .accuracies = {0.74}})};
  const auto cells = make_cells(records);
  const auto result = convergence(cells);
  ASSERT_EQ(result->variants.size(), 1U);
  EXPECT_EQ(result->variants[0].seeds, 2);
  EXPECT_NEAR(result->variants[0].accuracy, 0.72, 1e-12);
  // p(1-p)/10000 = 2.016e-5; the seeds' variance 8e-4 over 2.
  EXPECT_NEAR(result->variants[0].standard_error, std::sqrt(2.016e-5 + 4e-4), 1e-9);
}

TEST(Convergence, ShowsTheUpdatesOfEachVariant) {
  const auto records = three_variants(0.7, 0.5, 0.6);
  const auto cells = make_cells(records);
  const auto result = convergence(cells);
  EXPECT_EQ(result->variants[0].updates, 3 * 390);
  EXPECT_EQ(result->variants[1].updates, 3 * 24);
}

TEST(Convergence, ComparesTrainingsThatWereMadeOneByOne) {
  auto small = make_training({.variant = "", .accuracies = {0.3, 0.5, 0.70}});
  auto large =
      make_training({.variant = "", .workers = 2, .global_batch = 2048, .accuracies = {0.2, 0.3, 0.5}});
  auto scaled = make_training({.variant = "",
                               .workers = 2,
                               .global_batch = 2048,
                               .factor = 16,
                               .rule = "linear",
                               .accuracies = {0.2, 0.3, 0.6}});
  const std::vector<Record> records{large, small, scaled};
  const auto cells = make_cells(records);
  const auto result = convergence(cells);
  ASSERT_TRUE(result && result->baseline && result->large);
  EXPECT_EQ(*result->baseline, 1U) << "the smallest global batch";
  EXPECT_EQ(result->variants[0].name, "b 1024, N 2, scale-lr none");
  EXPECT_EQ(result->variants[2].name, "b 1024, N 2, scale-lr linear");
  EXPECT_THAT(result->variants[0].verdict.remarks,
              testing::Contains(testing::HasSubstr("kept at 0.1 while the global batch grew 16 times")));
  EXPECT_THAT(result->variants[0].verdict.remarks,
              testing::Contains(testing::HasSubstr("72 updates against")));
  EXPECT_NEAR(*result->variants[2].given_back, 0.5, 1e-9);
  EXPECT_FALSE(convergence(make_cells({&records.front(), 1}))) << "one alone is compared with nothing";
}

TEST(Convergence, NamesAVariantWithoutAccuracy) {
  auto records = three_variants(0.7, 0.5, 0.6);
  records[2].status = "failed";
  records[2].reason = "step 5: the loss is no longer finite";
  records[2].epochs.clear();
  const auto cells = make_cells(records);
  const auto result = convergence(cells);
  EXPECT_EQ(result->variants.size(), 2U);
  ASSERT_EQ(result->missing.size(), 1U);
  EXPECT_EQ(result->missing[0], "+ linear scaling: step 5: the loss is no longer finite");
}

TEST(Convergence, UsesNoAccuracyOfARecordThatContradictsItself) {
  auto broken = make_training({.variant = "large batch", .workers = 4, .global_batch = 2048});
  broken.epochs.back().test_accuracy = 0.70123456;  // no whole number of images
  const std::vector<measure::Record> records{make_training({}), broken};
  const auto cells = make_cells(records);
  const auto result = convergence(cells);
  ASSERT_TRUE(result);
  ASSERT_EQ(result->variants.size(), 1U);
  EXPECT_EQ(result->variants[0].name, "baseline");
}

}  // namespace
}  // namespace paceline::analysis
