#include "analysis/trainings/converge.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/compare/cell.h"
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

// Where two seeds of each lie far apart, what is known of the error is little: without any difference 18 % of
// such pairs were beyond two of their errors.
TEST(Convergence, WantsMoreOfADifferenceWhereFewSeedsLieFarApart) {
  const auto records = [](double apart, double worse) {
    std::vector<Record> result;
    for (int seed = 0; seed < 2; ++seed) {
      result.push_back(make_training({.seed = seed, .accuracies = {0.70 + apart * seed}}));
      result.push_back(make_training({.variant = "large batch",
                                      .workers = 2,
                                      .global_batch = 2048,
                                      .seed = seed,
                                      .accuracies = {0.70 - worse + apart * seed}}));
    }
    return result;
  };
  const auto of = [](const std::vector<Record>& some) {
    const auto cells = make_cells(some);
    return *convergence(cells)->variants[1].to_baseline;
  };
  const auto far = of(records(0.04, 0.10));  // 3.4 errors of which two degrees are known
  EXPECT_NEAR(far.degrees, 2, 0.3);
  EXPECT_GT(std::abs(far.value), 3 * far.standard_error);
  EXPECT_STREQ(far.word(), "weak evidence");
  EXPECT_STREQ(of(records(0.04, 0.16)).word(), "clear");
  const auto near = of(records(0.001, 0.02));  // the test set's error, which is known
  EXPECT_GT(near.degrees, 1000);
  EXPECT_STREQ(near.word(), "clear");
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

// Two "baseline" and two "large batch" stood in table and plot, and a remedy was held against the large batch
// of the other version.
TEST(Convergence, NamesTheVersionsOfVariantsOfOneName) {
  auto records = three_variants(0.70, 0.50, 0.65);
  for (Record record : three_variants(0.74, 0.60, 0.70)) {
    record.environment.version = "0.2.0";
    records.push_back(record);
  }
  const auto cells = make_cells(records);
  const auto result = convergence(cells);
  ASSERT_TRUE(result && result->baseline && result->large);
  ASSERT_EQ(result->variants.size(), 6U);
  EXPECT_EQ(result->variants[0].name, "baseline, version 0.1.0 (abc1234)");
  EXPECT_EQ(result->variants[4].name, "large batch, version 0.2.0");
  EXPECT_EQ(*result->baseline, 0U);
  EXPECT_EQ(*result->variants[2].large, 1U);
  EXPECT_EQ(*result->variants[5].large, 4U);
  EXPECT_THAT(result->variants[4].verdict.remarks,
              testing::Contains("the baseline was measured by version 0.1.0 (abc1234), this by 0.2.0"));
}

// The same seed gives the same bits: trained twice it was two seeds without any spread.
TEST(Convergence, CountsASeedOnce) {
  std::vector<Record> records{make_training({.seed = 0, .accuracies = {0.70}}),
                              make_training({.seed = 0, .accuracies = {0.70}}),
                              make_training({.seed = 1, .accuracies = {0.74}})};
  const auto cells = make_cells(records);
  const auto result = convergence(cells);
  ASSERT_EQ(result->variants.size(), 1U);
  EXPECT_EQ(result->variants[0].seeds, 2);
  EXPECT_EQ(result->variants[0].same_seed, 1);
  EXPECT_NEAR(result->variants[0].accuracy, 0.72, 1e-12);
}

// A training that was stopped after one epoch of two pulled the mean "of the last epoch" down.
TEST(Convergence, LeavesARepeatThatEndedBeforeOutOfTheMean) {
  std::vector<Record> records{make_training({.seed = 0, .accuracies = {0.50, 0.70}}),
                              make_training({.seed = 1, .accuracies = {0.50, 0.70}})};
  records[1].epochs.pop_back();
  records[1].status = "interrupted";
  const auto cells = make_cells(records);
  const auto result = convergence(cells);
  ASSERT_EQ(result->variants.size(), 1U);
  EXPECT_EQ(result->variants[0].seeds, 1);
  EXPECT_EQ(result->variants[0].cut_short, 1);
  EXPECT_NEAR(result->variants[0].accuracy, 0.70, 1e-12);
}

// Three seeds of one configuration had three plots, and neither a mean nor an interval.
TEST(Convergence, JoinsSeveralSeedsOfOneTraining) {
  std::vector<Record> records;
  for (int seed = 0; seed < 3; ++seed)
    records.push_back(make_training({.variant = "", .seed = seed, .accuracies = {0.70 + 0.01 * seed}}));
  for (Record& record : records) record.kind = "train";
  const auto cells = make_cells(records);
  const auto result = convergence(cells);
  ASSERT_TRUE(result);
  ASSERT_EQ(result->variants.size(), 1U);
  EXPECT_EQ(result->variants[0].seeds, 3);
  const auto one = make_cells({records.data(), 1});
  EXPECT_FALSE(convergence(one));
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

// A large batch that another number of loader threads had fed was taken for a remedy: the loss was then
// nobody's, and no remedy gave anything of it back.
TEST(Convergence, TakesHowTheWorkIsDoneForNoRemedy) {
  auto records = three_variants(0.70, 0.50, 0.65);
  records[1].settings["loader-threads"] = "2";
  records[1].settings["pin"] = "false";
  records[1].settings["emulate-link"] = "latency=50us";
  const auto cells = make_cells(records);
  const auto result = convergence(cells);
  ASSERT_TRUE(result && result->large);
  EXPECT_EQ(*result->large, 1U);
  EXPECT_NEAR(*result->variants[2].given_back, 0.75, 1e-9);
  EXPECT_EQ(changed_settings(records[0], records[1]), "");
  records[1].settings["shard"] = "32";  // batch norm sees other samples
  const auto sharded_cells = make_cells(records);
  EXPECT_NE(convergence(sharded_cells)->large, 1U);
  EXPECT_EQ(changed_settings(records[0], records[1]), "shard 32");
}

// Those that diverged have no accuracy: an advantage of the others is not the variant's, a loss still is.
TEST(Convergence, CallsNoAdvantageOfTheSeedsThatDidNotFailClear) {
  std::vector<Record> records;
  for (int seed = 0; seed < 3; ++seed)
    for (Record& record : three_variants(0.70 + 0.001 * seed, 0.40 + 0.001 * seed, 0.60 + 0.001 * seed)) {
      record.settings["seed"] = std::to_string(seed);
      records.push_back(std::move(record));
    }
  Record& failed = records.back();
  failed.status = "failed";
  failed.epochs.clear();
  const auto one_of = [&] {
    const auto cells = make_cells(records);
    const auto result = convergence(cells);
    const Variant& remedy = result->variants[2];
    return std::tuple(remedy.seeds, remedy.failed(), std::string(remedy.to_large->word()),
                      std::string(remedy.to_baseline->word()));
  };
  EXPECT_EQ(one_of(), std::tuple(2, 1, "of the seeds that did not fail", "clear"));
  failed.loss.emplace();  // with a rank: no fault of the rule
  EXPECT_EQ(one_of(), std::tuple(2, 0, "clear", "clear"));
}

// "1 of 3 seeds failed" of a seed whose disk was full once, and that stands in the mean.
TEST(Convergence, CountsAFailedSeedOnceAndNotWhereItWasTrainedAgain) {
  std::vector<Record> records;
  for (const int seed : {0, 1, 0, 2, 2}) records.push_back(make_training({.seed = seed}));
  for (const std::size_t i : {2U, 3U, 4U}) {
    records[i].status = "failed";
    records[i].reason = fmt::format("reason {}", i);
    records[i].epochs.clear();
  }
  const auto cells = make_cells(records);
  const auto result = convergence(cells);
  ASSERT_EQ(result->variants.size(), 1U);
  EXPECT_EQ(result->variants[0].seeds, 2);
  EXPECT_EQ(result->variants[0].failed(), 1);
  EXPECT_THAT(result->variants[0].failures,
              testing::ElementsAre(testing::Field(&FailedSeed::reason, "reason 4")));
}

TEST(Convergence, RemarksThatATrainingWasResumedWithOtherSettings) {
  auto records = three_variants(0.70, 0.50, 0.65);
  records[2].changes = {{.setting = "lr", .then = "0.4", .now = "0.1", .update = 10},
                        {.setting = "threads", .then = "1", .now = "2", .update = 10}};
  const auto cells = make_cells(records);
  const auto result = convergence(cells);
  EXPECT_THAT(
      result->variants[2].verdict.remarks,
      testing::Contains("this was resumed with other settings: from update 10 on, --lr is 0.1; it was 0.4"));
  EXPECT_THAT(result->variants[1].verdict.remarks,
              testing::Not(testing::Contains(testing::HasSubstr("resumed"))));
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
