#include "analysis/compare_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "golden/records.h"

namespace paceline::analysis {
namespace {

using golden::make_record;
using golden::make_training;
using measure::Record;
using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Property;

/// One and two workers, three repeats that lie 1 % apart; the backward pass takes `backward` times as long.
std::vector<Record> study(double backward = 1) {
  std::vector<Record> records;
  for (const int workers : {1, 2})
    for (int repeat = 0; repeat < 3; ++repeat) {
      const double level = 1 + 0.005 * (repeat - 1);
      records.push_back(make_record({.workers = workers,
                                     .repeat = repeat,
                                     .forward = 0.4 * level,
                                     .backward = 0.8 * backward * level,
                                     .update = 0.01 * level}));
    }
  return records;
}

TEST(CompareRuns, PairsCellsAndSortsThemByTheirRatio) {
  const auto a = study();
  auto b = study(0.75);
  for (auto& record : b)
    if (record.workers == 2) record = make_record({.workers = 2, .repeat = record.repeat, .backward = 1.2});
  const auto comparison = compare_runs(a, b);
  ASSERT_EQ(comparison.pairs.size(), 2U);
  EXPECT_EQ(comparison.pairs[0].name, "scale weak b 128, N 2");
  EXPECT_EQ(comparison.pairs[0].change, Change::regressed);
  EXPECT_NEAR(comparison.pairs[0].ratio.median, 1.22 / 1.62, 0.01);
  EXPECT_EQ(comparison.pairs[1].change, Change::improved);
  EXPECT_NEAR(comparison.pairs[1].ratio.median, 1.22 / 1.02, 0.01);
  EXPECT_THAT(comparison.differences, IsEmpty());
  EXPECT_THAT(comparison.unpaired, IsEmpty());
  EXPECT_EQ(comparison.number_of(Change::regressed), 1U);
}

TEST(CompareRuns, FindNoChangeInTheSameRecords) {
  const auto records = study();
  for (const auto& pair : compare_runs(records, records).pairs) {
    EXPECT_EQ(pair.change, Change::no_change);
    EXPECT_EQ(pair.ratio.median, 1);
  }
}

TEST(CompareRuns, NameTheSettingsThatDifferAndComparesThemAllTheSame) {
  const auto a = study();
  auto b = study(0.5);
  for (auto& record : b) {
    record.settings["bucket-mb"] = "8";
    record.precision = "bf16";
    record.environment.version = "0.2.0 (def5678)";
    record.settings["data"] = record.data.spec = "cifar10:elsewhere";  // the same images at another place
  }
  const auto comparison = compare_runs(a, b);
  ASSERT_EQ(comparison.pairs.size(), 2U);
  for (const auto& pair : comparison.pairs) EXPECT_EQ(pair.change, Change::improved);
  const auto row = [](const char* name, const char* before, const char* after) {
    return AllOf(Field(&SetupDifference::name, name), Field(&SetupDifference::a, before),
                 Field(&SetupDifference::b, after), Field(&SetupDifference::pairs, 2U));
  };
  EXPECT_THAT(comparison.differences,
              testing::IsSupersetOf({row("precision", "fp32", "bf16"), row("--bucket-mb", "not given", "8"),
                                     row("version", "0.1.0 (abc1234)", "0.2.0 (def5678)")}));
}

TEST(CompareRuns, RefuseFiguresOfDifferentThingsInWords) {
  const auto refusal_of = [](auto change) {
    auto b = study();
    for (auto& record : b) change(record);
    const auto a = study();
    const auto comparison = compare_runs(a, b);
    EXPECT_EQ(comparison.pairs.size(), 2U);
    EXPECT_EQ(comparison.number_of(Change::no_change), 0U);
    return comparison.pairs.empty() || comparison.pairs[0].is_compared() ? std::string()
                                                                         : comparison.pairs[0].refusals[0];
  };
  EXPECT_THAT(refusal_of([](Record& r) { r.model.name = "resnet8-cifar"; }),
              HasSubstr("the baseline's model is resnet18-cifar, here it is resnet8-cifar"));
  EXPECT_THAT(refusal_of([](Record& r) { r.data.synthetic = true; }), HasSubstr("data"));
  EXPECT_THAT(refusal_of([](Record& r) { r.settings["augment"] = "false"; }), HasSubstr("--augment"));
  EXPECT_THAT(refusal_of([](Record& r) { r.environment.build = "Debug"; }), HasSubstr("this one's is Debug"));
  EXPECT_THAT(refusal_of([](Record& r) { r.window.others_cores = 0.75; }),
              "other programs kept 0.75 of 2 cores busy in B");
}

TEST(CompareRuns, CompareWhatOnlyOneRepeatOfThreeWasDisturbedIn) {
  const auto a = study();
  auto b = study();
  b[0].window.others_cores = 0.75;
  EXPECT_TRUE(compare_runs(a, b).pairs[0].is_compared());
}

TEST(CompareRuns, ListCellsOfOneSideWithTheReason) {
  auto a = study();
  auto b = study();
  a.push_back(make_record({.workers = 4}));
  b.push_back(make_record({.workers = 2, .local_batch = 256}));
  a.push_back(golden::make_skipped({.workers = 2, .local_batch = 256}, "does not fit"));
  const auto comparison = compare_runs(a, b);
  EXPECT_EQ(comparison.pairs.size(), 2U);
  EXPECT_THAT(comparison.unpaired,
              ElementsAre(AllOf(Field(&Unpaired::cell, Property(&Cell::name, "scale weak b 128, N 4")),
                                Field(&Unpaired::is_of_a, true), Field(&Unpaired::why, "not in B")),
                          AllOf(Field(&Unpaired::cell, Property(&Cell::name, "scale weak b 256, N 2")),
                                Field(&Unpaired::is_of_a, false),
                                Field(&Unpaired::why, "in A skipped: does not fit"))));
}

// Two set-ups of one size: each goes to the one that is most like it, whatever their order.
TEST(CompareRuns, PairTheMostAlikeOfOneSize) {
  const auto with_loaders = [](const char* threads, double forward, const char* version) {
    auto record = make_record({.workers = 2, .forward = forward});
    record.settings["loader-threads"] = threads;
    record.environment.version = version;
    return record;
  };
  const std::vector<Record> a{with_loaders("1", 0.4, "1"), with_loaders("2", 0.3, "1")};
  const std::vector<Record> b{with_loaders("2", 0.3, "2"), with_loaders("1", 0.4, "2")};
  const auto comparison = compare_runs(a, b);
  ASSERT_EQ(comparison.pairs.size(), 2U);
  for (const auto& pair : comparison.pairs) EXPECT_NEAR(pair.ratio.median, 1, 1e-9) << pair.name;
  EXPECT_EQ(comparison.differences.size(), 1U);  // the version
}

TEST(CompareRuns, PairTwoSingleTrainingsWhateverTheirSizes) {
  const std::vector<Record> a{make_training({.variant = "", .global_batch = 128})};
  const std::vector<Record> b{make_training({.variant = "", .global_batch = 256})};
  const auto comparison = compare_runs(a, b);
  ASSERT_EQ(comparison.pairs.size(), 1U);
  EXPECT_NEAR(comparison.pairs[0].ratio.median, 2, 1e-9) << "twice the images in a step as long";
  EXPECT_TRUE(comparison.pairs[0].is_of_one_run);
}

std::vector<Record> trainings(const std::vector<double>& last) {
  std::vector<Record> records;
  for (std::size_t seed = 0; seed < last.size(); ++seed)
    records.push_back(make_training({.seed = static_cast<int>(seed), .accuracies = {0.4, 0.6, last[seed]}}));
  return records;
}

Change accuracy_change(const std::vector<double>& before, const std::vector<double>& after) {
  const auto a = trainings(before), b = trainings(after);
  const auto comparison = compare_runs(a, b);
  EXPECT_EQ(comparison.pairs.size(), 1U);
  EXPECT_TRUE(comparison.pairs[0].accuracy.has_value());
  return comparison.pairs[0].accuracy->change;
}

TEST(CompareRuns, CompareAccuraciesOverSeeds) {
  EXPECT_EQ(accuracy_change({0.70, 0.71, 0.69}, {0.80, 0.81, 0.79}), Change::improved);
  EXPECT_EQ(accuracy_change({0.70, 0.71, 0.69}, {0.60, 0.61, 0.59}), Change::regressed);
  EXPECT_EQ(accuracy_change({0.70, 0.71, 0.69}, {0.71, 0.70, 0.70}), Change::no_change);
  EXPECT_EQ(accuracy_change({0.70}, {0.80}), Change::within_noise) << "of one seed nothing is clear";
}

TEST(CompareRuns, RefuseAccuraciesAfterOtherEpochs) {
  const auto a = trainings({0.7});
  const std::vector<Record> b{make_training({.accuracies = {0.4, 0.7}})};
  const auto comparison = compare_runs(a, b);
  ASSERT_EQ(comparison.pairs.size(), 1U);
  ASSERT_TRUE(comparison.pairs[0].accuracy.has_value());
  EXPECT_FALSE(comparison.pairs[0].accuracy->difference);
  EXPECT_THAT(comparison.pairs[0].accuracy->refusals, testing::Contains(HasSubstr("3 epochs, this 2")));
}

}  // namespace
}  // namespace paceline::analysis
