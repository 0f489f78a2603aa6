#include "analysis/steps/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "analysis/compare/cell.h"
#include "analysis/steps/scaling.h"
#include "golden/records.h"

namespace paceline::analysis {
namespace {

using golden::make_record;
using golden::make_skipped;
using measure::Record;

/// The only sweep that there is.
std::optional<Sweep> sweep(const std::vector<Cell>& cells) {
  auto all = sweeps(cells);
  EXPECT_LE(all.size(), 1U);
  return all.empty() ? std::nullopt : std::optional(std::move(all.front()));
}

golden::Run at(std::int64_t batch, double images_per_s) {
  return {.kind = "sweep",
          .scaling = "",
          .local_batch = batch,
          .forward = static_cast<double>(batch) / images_per_s,
          .backward = 0,
          .update = 0,
          .data_wait = 0,
          .copy = 0,
          .other = 0,
          .jitter = {1, 1, 1}};
}

TEST(Knee, IsTheSmallestBatchWithinFivePercentOfTheBest) {
  const struct {
    std::vector<double> rates;
    std::size_t knee;
  } cases[] = {
      {{100}, 0}, {{50, 94, 95.1, 100}, 2}, {{96, 100, 90}, 0}, {{10, 20, 40, 80}, 3}, {{100, 100}, 0}};
  for (const auto& [rates, expected] : cases) EXPECT_EQ(knee(rates), expected);
}

TEST(Sweep, OrdersByBatchAndFindsBestAndKnee) {
  const std::vector<Record> records{make_record(at(512, 100)), make_record(at(32, 80)),
                                    make_record(at(128, 96))};
  const auto cells = make_cells(records);
  const auto result = sweep(cells);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->points[*result->knee].cell->local_batch, 128);
  EXPECT_EQ(result->points[*result->best].cell->local_batch, 512);
  EXPECT_EQ(result->largest_that_fits, 512);
  EXPECT_EQ(result->points.back().limit, Limit::none) << "it was measured";
}

/// Three repeats whose rates are `low`, `middle` and `high`.
void add_spread(std::vector<Record>& records, std::int64_t batch, double low, double middle, double high) {
  for (const double rate : {low, middle, high}) records.push_back(make_record(at(batch, rate)));
}

TEST(Sweep, DecidesTheKneeWhereIntervalsLieApart) {
  std::vector<Record> records;
  add_spread(records, 32, 79, 80, 81);
  add_spread(records, 128, 98, 98.5, 99);
  add_spread(records, 512, 99, 100, 101);
  const auto cells = make_cells(records);
  const auto result = sweep(cells);
  EXPECT_EQ(result->points[*result->knee].cell->local_batch, 128);
  EXPECT_TRUE(result->undecided.empty());
}

TEST(Sweep, LeavesTheKneeOpenWhereIntervalsOverlap) {
  std::vector<Record> records;
  add_spread(records, 8, 180, 380, 1500);
  add_spread(records, 32, 58, 60, 62);
  add_spread(records, 512, 300, 310, 430);
  const auto cells = make_cells(records);
  const auto result = sweep(cells);
  EXPECT_EQ(result->points[*result->knee].cell->local_batch, 8);
  EXPECT_EQ(result->undecided, (std::vector<std::size_t>{0, 2}));
}

TEST(Sweep, CountsASmallerBatchThatMayBeWithinTheTolerance) {
  std::vector<Record> records;
  add_spread(records, 64, 90, 94, 99);
  add_spread(records, 128, 99, 100, 101);
  const auto cells = make_cells(records);
  const auto result = sweep(cells);
  EXPECT_EQ(*result->knee, 1U);
  EXPECT_EQ(result->undecided, (std::vector<std::size_t>{0, 1}));
}

TEST(Sweep, SaysWhereMemoryEndsAndWhatStillFits) {
  const std::vector<Record> records{make_record(at(128, 96)),
                                    make_skipped(at(742, 96), "by the plan; not timed"),
                                    make_skipped(at(1024, 96), "does not fit")};
  const auto cells = make_cells(records);
  const auto result = sweep(cells);
  EXPECT_EQ(result->points[1].limit, Limit::not_timed);
  EXPECT_EQ(result->points[2].limit, Limit::memory);
  EXPECT_EQ(result->points[1].cell->local_batch, 742);
  EXPECT_EQ(result->largest_that_fits, 742);
  EXPECT_EQ(result->largest_met, Limit::memory);
}

TEST(Sweep, SaysWhereADevicesMemoryEnds) {
  auto measured = make_record(at(128, 96));
  auto refused = make_skipped(at(1024, 96), "does not fit");
  refused.memory.plan_bytes = refused.memory.available_bytes;  // the host's is enough
  measured.memory.device = Record::Memory::Device{.plan_bytes = 30, .plan_lines = {}, .available_bytes = 80};
  refused.memory.device = Record::Memory::Device{.plan_bytes = 90, .plan_lines = {}, .available_bytes = 80};
  const std::vector<Record> records{measured, refused};
  const auto cells = make_cells(records);
  const auto result = sweep(cells);
  EXPECT_EQ(result->points[0].plan_bytes, 30) << "what the batch fills";
  EXPECT_EQ(result->points[1].limit, Limit::memory);
  EXPECT_EQ(result->largest_met, Limit::memory);
}

TEST(Sweep, LeavesAPointOffTheCurveThatIsNotComparable) {
  auto other = make_record(at(256, 500));
  other.settings["loader-threads"] = "8";
  const std::vector<Record> records{make_record(at(128, 96)), other};
  const auto cells = make_cells(records);
  const auto result = sweep(cells);
  EXPECT_FALSE(result->points[1].on_curve);
  EXPECT_EQ(result->points[*result->best].cell->local_batch, 128);
}

// A batch measured by two versions stood on the curve twice, and the faster version made the knee.
TEST(Sweep, HasOnePointABatchOfTheVersionThatMeasuredMost) {
  std::vector<Record> records;
  for (const std::int64_t batch : {32, 64, 128}) records.push_back(make_record(at(batch, 100)));
  for (const std::int64_t batch : {128, 256}) {
    records.push_back(make_record(at(batch, 200)));
    records.back().environment.version = "0.2.0";
  }
  const auto cells = make_cells(records);
  const auto curve = sweep(cells);
  ASSERT_TRUE(curve);
  ASSERT_EQ(curve->points.size(), 5U);
  EXPECT_EQ(curve->on_curve, 4);
  EXPECT_FALSE(curve->points[3].on_curve);
  ASSERT_EQ(curve->points[3].verdict.refusals.size(), 1U);
  EXPECT_EQ(
      curve->points[3].verdict.refusals[0],
      "measured with version 0.2.0; the curve shows what was measured with version 0.1.0 (abc1234), which "
      "covers at least as many batches");
  EXPECT_EQ(curve->points[4].verdict.remarks.size(), 1U) << "256 only the other version measured";
}

// Cells of scaling serve where there is no sweep: of two versions the first stood there, without a word.
TEST(Sweep, DropsNoVersionOfACellThatServes) {
  std::vector<Record> records;
  for (const char* version : {"1", "2"})
    for (const std::int64_t batch : {32, 64}) {
      records.push_back(make_record({.local_batch = batch}));
      records.back().environment.version = version;
    }
  const auto cells = make_cells(records);
  const auto curve = sweep(cells);
  ASSERT_TRUE(curve);
  EXPECT_EQ(curve->points.size(), 4U);
  EXPECT_EQ(curve->on_curve, 2);
}

TEST(Sweep, SetsThePeakBesideThePlan) {
  auto record = make_record(at(128, 96));
  record.memory.plan_bytes = 2'000'000'000;
  record.memory.peak_bytes = 1'900'000'000;
  const auto cells = make_cells({&record, 1});
  EXPECT_DOUBLE_EQ(*sweep(cells)->points[0].peak_over_plan, 0.95);
}

// A sweep on 2 workers beside one on 1 worker disappeared.
TEST(Sweep, IsOneForEachNumberOfWorkers) {
  std::vector<Record> records;
  for (const int workers : {2, 1})
    for (const std::int64_t batch : {32, 64, 128}) {
      auto run = at(batch, static_cast<double>(workers == 1 ? batch + 100 : 500));
      run.workers = workers;
      records.push_back(make_record(run));
    }
  const auto cells = make_cells(records);
  const auto all = sweeps(cells);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].workers, 1);
  EXPECT_EQ(all[1].workers, 2);
  for (const Sweep& one : all) EXPECT_EQ(one.on_curve, 3);
  EXPECT_EQ(all[0].points[*all[0].best].cell->local_batch, 128);
  EXPECT_EQ(all[1].points[*all[1].knee].cell->local_batch, 32);
  EXPECT_NEAR(all[0].points[*all[0].best].cell->images_per_s.median, 228, 1e-6);
  EXPECT_NEAR(all[1].points[*all[1].best].cell->images_per_s.median, 1000, 1e-6);  // of both
}

TEST(Sweep, IsOneForEachWayOfJoiningTheWorkers) {
  std::vector<Record> records;
  for (const std::int64_t batch : {32, 64}) {
    auto run = at(batch, 100);
    run.workers = 2;
    for (const bool processes : {false, true}) {
      records.push_back(make_record(run));
      if (!processes) continue;
      records.back().communication.communicator = "mpi";
      records.back().communication.processes = 2;
    }
  }
  records.erase(records.begin());  // not even one batch of both
  const auto cells = make_cells(records);
  const auto all = sweeps(cells);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].setup, "2 processes");
  EXPECT_EQ(all[1].setup, "threads of one process");
  EXPECT_EQ(all[0].points.size(), 2U);
  EXPECT_EQ(all[1].points.size(), 1U);
}

TEST(Sweep, IsOneForEachModel) {
  std::vector<Record> records;
  for (const char* model : {"resnet18-cifar", "resnet8-cifar"})
    for (const std::int64_t batch : {32, 64}) {
      records.push_back(make_record(at(batch, 100)));
      records.back().model.name = model;
    }
  const auto cells = make_cells(records);
  const auto all = sweeps(cells);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].subject, "resnet18-cifar");
  EXPECT_EQ(all[1].subject, "resnet8-cifar");
  for (const Sweep& one : all) EXPECT_EQ(one.points.size(), 2U);
}

// Two cells of a batch were measured with other loaders: of the same curve neither was left out with a word.
TEST(Sweep, IsOneForEachSettingThatTimesDependOn) {
  std::vector<Record> records;
  for (const std::int64_t batch : {32, 64})
    for (const char* threads : {"1", "4"}) {
      records.push_back(make_record(at(batch, 100)));
      records.back().settings["loader-threads"] = threads;
    }
  records.push_back(make_record(at(64, 100)));
  records.back().settings["lr"] = "0.2";  // changes no time
  const auto cells = make_cells(records);
  const auto all = sweeps(cells);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].setup, "loader-threads 1");
  EXPECT_EQ(all[1].setup, "loader-threads 4");
  EXPECT_EQ(all[0].on_curve, 3);
}

TEST(Sweep, IsNothingForOneTraining) {
  const auto record = golden::make_training({.variant = ""});
  const auto cells = make_cells({&record, 1});
  EXPECT_FALSE(sweep(cells).has_value());
}

// One worker of batch 128 with the same threads in both was measured twice, and shown with two values.
TEST(Sweep, HasTheScalingCellThatWasMeasuredForItToo) {
  std::vector<Record> records;
  for (int repeat = 0; repeat < 3; ++repeat) {
    for (const std::int64_t batch : {32, 64})
      records.push_back(
          make_record({.kind = "sweep", .scaling = "", .local_batch = batch, .repeat = repeat}));
    records.push_back(make_record({.workers = 1, .local_batch = 128, .repeat = repeat}));
    records.back().also = "sweep";
    records.push_back(make_record({.workers = 2, .local_batch = 128, .repeat = repeat}));
  }
  const auto cells = make_cells(records);
  ASSERT_EQ(cells.size(), 4U);
  const auto found = sweeps(cells);
  ASSERT_EQ(found.size(), 1U);
  std::vector<std::int64_t> batches;
  for (const auto& point : found[0].points) {
    batches.push_back(point.cell->local_batch);
    EXPECT_TRUE(point.on_curve) << point.cell->name();
  }
  EXPECT_EQ(batches, (std::vector<std::int64_t>{32, 64, 128}));
  EXPECT_EQ(found[0].points[2].cell->records.size(), 3U);
  EXPECT_EQ(found[0].points[2].cell, scaling(cells, Mode::weak).at(0).baseline)
      << "and the baseline of scaling";
}

TEST(Sweep, OfAnEarlierRunTakesNoSecondCellOfABatch) {
  std::vector<Record> records{make_record({.kind = "sweep", .scaling = "", .local_batch = 64}),
                              make_record({.kind = "sweep", .scaling = "", .local_batch = 128}),
                              make_record({.workers = 1, .local_batch = 128})};
  records.back().also = "sweep";
  const auto cells = make_cells(records);
  EXPECT_EQ(sweeps(cells).at(0).points.size(), 2U);
}

}  // namespace
}  // namespace paceline::analysis
