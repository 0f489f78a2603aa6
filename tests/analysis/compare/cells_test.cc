#include "analysis/compare/cell.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "golden/records.h"

namespace paceline::analysis {
namespace {

using golden::make_record;
using golden::make_skipped;
using golden::make_training;
using measure::Record;

TEST(Cells, JoinRepeatsAndNothingElse) {
  const std::vector<Record> records{
      make_record({.workers = 1, .repeat = 0}), make_record({.workers = 2, .repeat = 0}),
      make_record({.workers = 1, .repeat = 1}), make_record({.workers = 2, .repeat = 1})};
  const auto cells = make_cells(records);
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_EQ(cells[0].workers, 1);
  EXPECT_EQ(cells[0].records.size(), 2U);
  EXPECT_EQ(cells[1].label, "b 128, N 2");
}

TEST(Cells, KeepApartWhatDiffersInAnySettingButTheSeed) {
  auto other = make_record({.repeat = 1});
  other.settings["loader-threads"] = "4";
  auto seed = make_record({.repeat = 2});
  seed.settings["seed"] = "7";
  const std::vector<Record> records{make_record({}), other, seed};
  const auto cells = make_cells(records);
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_EQ(cells[0].records.size(), 2U);
}

TEST(Cells, JoinPrecisionsByWhatTheyCameTo) {
  auto automatic = make_record({.repeat = 1});
  automatic.settings["precision"] = "auto";
  automatic.settings["window-seconds"] = "30";
  auto bf16 = make_record({.repeat = 2});
  bf16.settings["precision"] = "auto";
  bf16.precision = "bf16";
  const std::vector<Record> records{make_record({}), automatic, bf16};
  const auto cells = make_cells(records);
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_EQ(cells[0].records.size(), 2U);
  EXPECT_EQ(cells[1].record().precision, "bf16");
}

TEST(Cells, TakeTheMedianOverAllStepsOfAllRepeats) {
  // Steps of 1 s times the jitter: {1, 2, 3} and {4, 5}; the pooled median is 3.
  golden::Run run{.forward = 0.5, .backward = 0.4, .update = 0.1, .data_wait = 0, .copy = 0, .other = 0};
  run.jitter = {1, 2, 3};
  std::vector<Record> records{make_record(run)};
  run.jitter = {4, 5};
  run.repeat = 1;
  records.push_back(make_record(run));
  const auto cells = make_cells(records);
  ASSERT_EQ(cells.size(), 1U);
  EXPECT_NEAR(cells[0].step_s.median, 3, 1e-12);
  EXPECT_EQ(cells[0].step_s.n, 5);
  EXPECT_NEAR(cells[0].images_per_s.median, 128.0 / 3, 1e-9);
  EXPECT_EQ(cells[0].steps_measured, 5);
}

TEST(Cells, CountTheStepsWithoutTimesOfTheirOwn) {
  golden::Run run{.forward = 0.5, .backward = 0.4, .update = 0.1, .data_wait = 0, .copy = 0, .other = 0};
  run.jitter = {1, 1, 1, 1};
  auto record = make_record(run);
  record.window.timed_of = 2;
  for (auto& rank : record.ranks) {
    rank.steps_s = 4;
    rank.step_s.resize(2);
  }
  const std::vector<Record> records{record};
  const auto cells = make_cells(records);
  ASSERT_TRUE(cells[0].is_measured()) << cells[0].reason;
  EXPECT_EQ(cells[0].steps_measured, 4);
  EXPECT_EQ(cells[0].step_s.n, 2);
}

TEST(Cells, WidenTheIntervalToTheMediansOfTheRepeats) {
  // A hundred steps a repeat pin each median down; the repeats disagree by 10 %, and that is what is shown.
  golden::Run run;
  run.jitter.assign(100, 1.0);
  std::vector<Record> records{make_record(run), make_record(run)};
  run.jitter.assign(100, 1.1);
  records.push_back(make_record(run));
  const auto cells = make_cells(records);
  EXPECT_NEAR(cells[0].step_s.median, run.step(), 1e-12);
  EXPECT_NEAR(cells[0].step_s.high, 1.1 * run.step(), 1e-12);
}

TEST(Cells, MeanOverRanksCountsNoWaitTwice) {
  auto record = make_record({.workers = 2});
  record.ranks[0].step_s = {1.0, 3.0};
  record.ranks[1].step_s = {2.0, 3.0};
  EXPECT_THAT(step_seconds(record), testing::ElementsAre(1.5, 3.0));
}

TEST(Cells, EstimateAnEpochFromStepsAndSayFromHowMany) {
  const auto record = make_record({});
  const auto cells = make_cells({&record, 1});
  EXPECT_FALSE(cells[0].epoch_measured);
  EXPECT_EQ(cells[0].epoch_basis, "from 8 steps");
  EXPECT_EQ(cells[0].record().data.steps_per_epoch, 390);
  EXPECT_NEAR(cells[0].epoch_s.median, 50000.0 / 128 * cells[0].step_s.median, 1e-9);
  EXPECT_NEAR(cells[0].epoch_s.high, 50000.0 / 128 * cells[0].step_s.high, 1e-9);
}

TEST(Cells, CountAllImagesInAnEpochWhateverTailTheBatchDrops) {
  // One batch of 32,768 is an epoch of 65.5 % of the 50,000 images; at equal images/s the epochs are equal.
  golden::Run run{
      .forward = 32768 / 100.0, .backward = 0, .update = 0, .data_wait = 0, .copy = 0, .other = 0};
  run.local_batch = 32768;
  const auto large = make_record(run);
  run.local_batch = 100;
  run.forward = 1;
  const auto small = make_record(run);
  EXPECT_EQ(large.data.steps_per_epoch, 1);
  const std::vector<Record> records{small, large};
  const auto cells = make_cells(records);
  EXPECT_NEAR(cells[0].epoch_s.median, 500, 1e-9);
  EXPECT_NEAR(cells[1].epoch_s.median, 500, 1e-9);
}

TEST(Cells, TakeAWindowOfAWholeEpochAsAMeasuredOne) {
  golden::Run run{.local_batch = 6250, .jitter = {1, 1, 1, 1, 1, 1, 1, 1}};
  auto record = make_record(run);
  record.window.unit = "epoch";
  ASSERT_EQ(record.data.steps_per_epoch, 8);
  record.window.wall_s += 3;
  record.ranks[0].wall_s += 3;
  record.ranks[0].phases[static_cast<std::size_t>(measure::Phase::evaluation)] = 2;
  record.ranks[0].phases[static_cast<std::size_t>(measure::Phase::checkpoint)] = 1;
  auto again = record;
  again.window.wall_s += 0.5;
  again.ranks[0].wall_s += 0.5;
  again.ranks[0].phases[static_cast<std::size_t>(measure::Phase::other)] += 0.5;
  const std::vector<Record> records{record, again};
  const auto cells = make_cells(records);
  ASSERT_EQ(cells.size(), 1U);
  EXPECT_TRUE(cells[0].epoch_measured);
  EXPECT_EQ(cells[0].epoch_basis, "median of 2 epochs");
  EXPECT_NEAR(cells[0].epoch_s.low, 8 * run.step(), 1e-9);
  EXPECT_NEAR(cells[0].epoch_s.high, 8 * run.step() + 0.5, 1e-9);
  record.window.steps = 7;
  EXPECT_TRUE(epoch_seconds(record).empty()) << "a part of an epoch is none";
}

TEST(Cells, TakeAMeasuredEpochWhereThereIsOne) {
  auto record = make_training({.variant = ""});
  record.epochs[0].seconds = 100;
  record.epochs[1].seconds = 90;
  record.epochs[2].seconds = 91;
  const auto cells = make_cells({&record, 1});
  EXPECT_TRUE(cells[0].epoch_measured);
  EXPECT_DOUBLE_EQ(cells[0].epoch_s.median, 91 * (50000.0 / 128) / 390);
  EXPECT_EQ(cells[0].epoch_basis, "median of 3 epochs");
}

TEST(Cells, TheIntervalOfAnEpochHoldsTheMedianOfEachRepeat) {
  std::vector<Record> records;
  for (const double around : {80.0, 100.0, 101.0}) {
    auto& record = records.emplace_back(make_training(
        {.variant = "", .seed = static_cast<int>(records.size()), .accuracies = {0.5, 0.5, 0.5, 0.5, 0.5}}));
    for (std::size_t i = 0; i < 5; ++i) record.epochs[i].seconds = around - 2 + static_cast<double>(i);
  }
  const auto cells = make_cells(records);
  ASSERT_EQ(cells.size(), 1U);
  EXPECT_EQ(cells[0].epoch_basis, "median of 15 epochs");
  // The fourth smallest of all fifteen is 81; the first run's own median lies below it.
  EXPECT_DOUBLE_EQ(cells[0].epoch_s.low, 80 * (50000.0 / 128) / 390);
}

TEST(Cells, LeaveOutAnEpochThatWasCutShort) {
  auto record = make_training({.variant = ""});
  record.epochs.back().updates -= 100;
  record.epochs.back().seconds = 1;
  EXPECT_EQ(epoch_seconds(record).size(), 2U);
}

TEST(Cells, LeaveOutAnEpochOfWhichOnlyAPartWasTimed) {
  // Resumed inside its second epoch, the first part unknown: by its updates alone it would look whole.
  auto record = make_training({.variant = ""});
  record.epochs[1].steps = record.data.steps_per_epoch - 1;
  record.epochs[2].steps = record.data.steps_per_epoch;
  EXPECT_EQ(epoch_seconds(record).size(), 2U);
}

TEST(Cells, KeepWhatWasNotRunWithItsReason) {
  const std::vector<Record> records{make_skipped({.workers = 4}, "too slow"), make_record({.workers = 2})};
  const auto cells = make_cells(records);
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_EQ(cells[0].status, "skipped");
  EXPECT_EQ(cells[0].reason, "too slow");
  EXPECT_FALSE(cells[0].is_measured());
}

TEST(Cells, KeepAFailedRepeatBesideTheMeasuredOnes) {
  auto failed = make_skipped({.workers = 2, .repeat = 1}, "a peer was lost");
  failed.status = "failed";
  const std::vector<Record> records{failed, make_record({.workers = 2})};
  const auto cells = make_cells(records);
  ASSERT_EQ(cells.size(), 1U);
  EXPECT_TRUE(cells[0].is_measured());
  EXPECT_THAT(cells[0].lost_repeats, testing::ElementsAre("a peer was lost"));
}

// A rate that diverged with a new version was told of the old one, whose trainings all ended.
TEST(Cells, KeepAFailedRepeatBesideThoseOfItsOwnVersion) {
  std::vector<Record> records;
  for (const char* version : {"0.1.0", "0.2.0"}) {
    records.push_back(make_record({.workers = 2}));
    records.back().environment.version = version;
  }
  records.push_back(make_skipped({.workers = 2, .repeat = 1}, "diverged"));
  Record& failed = records.back();
  failed.status = "failed";
  failed.environment.version = "0.2.0";
  failed.environment.libraries.clear();  // a study asks no engine for those of what it did not run
  auto cells = make_cells(records);
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_THAT(cells[0].lost_repeats, testing::IsEmpty());
  EXPECT_THAT(cells[1].lost_repeats, testing::ElementsAre("diverged"));
  EXPECT_THAT(cells[1].failed_repeats, testing::ElementsAre(&failed));

  failed.environment.version = "0.3.0";
  cells = make_cells(records);
  ASSERT_EQ(cells.size(), 3U) << "a version of which nothing was measured has a row that says why";
  EXPECT_EQ(cells[2].status, "failed");
  EXPECT_EQ(cells[2].label, "b 128, N 2, version 0.3.0");
}

TEST(Cells, LeaveOutWhatContradictsItselfUnderItsOwnVersion) {
  std::vector<Record> records{make_record({}), make_record({.repeat = 1})};
  records[1].environment.version = "0.2.0";
  records[1].window.wall_s *= 2;
  const auto cells = make_cells(records);
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_THAT(cells[0].lost_repeats, testing::IsEmpty());
  EXPECT_EQ(cells[1].status, "left out");
}

TEST(Cells, KeepApartWhatAResumeDidOtherwise) {
  std::vector<Record> records{make_record({}), make_record({.repeat = 1}), make_record({.repeat = 2})};
  records[2].changes = {{.setting = "lr", .then = "0.4", .now = "0.1", .update = 10}};
  const auto cells = make_cells(records);
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_EQ(cells[0].records.size(), 2U);
  EXPECT_EQ(cells[1].label, "b 128, N 1, change at a resume (update 10: lr was 0.4)");
}

// "4 workers ... 1.49, efficiency 37.3 %" came from a record whose workers somebody had edited.
TEST(Cells, UseNoFigureOfARecordThatContradictsItself) {
  auto edited = make_record({.workers = 2});
  edited.workers = 4;
  const std::vector<measure::Record> records{make_record({}), edited};
  const auto cells = make_cells(records);
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_FALSE(cells[1].is_measured());
  EXPECT_EQ(cells[1].status, "left out");
  EXPECT_THAT(cells[1].reason,
              testing::HasSubstr("its record contradicts itself: 4 workers of local batch 128"));
}

TEST(Cells, AreNotMadeOfCollectives) {
  auto collectives = make_record({});
  collectives.kind = "comm";
  auto skipped = collectives;
  skipped.ranks.clear();
  const std::vector<measure::Record> records{collectives, make_record({}), skipped};
  EXPECT_EQ(make_cells(records).size(), 1U);
}

TEST(Cells, TakeAContradictoryRepeatForALostOne) {
  auto edited = make_record({.repeat = 1});
  for (double& step : edited.ranks[0].step_s) step /= 2;
  const std::vector<measure::Record> records{edited, make_record({})};
  const auto cells = make_cells(records);
  ASSERT_EQ(cells.size(), 1U);
  EXPECT_EQ(cells[0].status, "complete");
  EXPECT_EQ(cells[0].step_s.n, 8);
  ASSERT_EQ(cells[0].lost_repeats.size(), 1U);
  EXPECT_THAT(cells[0].lost_repeats[0], testing::HasSubstr("contradicts itself: rank 0: its steps"));
}

}  // namespace
}  // namespace paceline::analysis
