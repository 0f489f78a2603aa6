#include "analysis/compare/operating_point.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/compare/cell.h"
#include "golden/records.h"

namespace paceline::analysis {
namespace {

using golden::make_record;
using measure::Record;

/// A cell whose steps take `seconds` each, so that its interval is none to speak of.
golden::Run exact(int workers, std::int64_t batch, double seconds, std::vector<double> jitter = {1, 1, 1}) {
  return {.scaling = "weak",
          .workers = workers,
          .local_batch = batch,
          .forward = seconds,
          .backward = 0,
          .update = 0,
          .exposed_transfer = 0,
          .exposed_wait = 0,
          .data_wait = 0,
          .copy = 0,
          .other = 0,
          .jitter = std::move(jitter)};
}

std::vector<const Cell*> pointers(const std::vector<Cell>& cells) {
  std::vector<const Cell*> all;
  for (const Cell& cell : cells) all.push_back(&cell);
  return all;
}

Record disturbed(Record record, double others = 0.8) {
  record.window.others_cores = others;
  return record;
}

Record unknown(Record record) {
  record.window.others_cores.reset();
  return record;
}

std::vector<std::int64_t> batches_of(const std::vector<const Cell*>& cells) {
  std::vector<std::int64_t> batches;
  for (const Cell* cell : cells) batches.push_back(cell->local_batch);
  return batches;
}

/// The same, but stopped for `seconds` in the midst of a step.
Record paused(Record record, double seconds) {
  record.window.wall_s += seconds;
  record.window.paused_s = seconds;
  record.ranks.front().wall_s += seconds;
  record.ranks.front().step_s.front() += seconds;
  record.ranks.front().phases[static_cast<std::size_t>(measure::Phase::forward)] += seconds;
  return record;
}

TEST(OperatingPoint, KeepsPausesOut) {
  const std::vector<Record> quiet{make_record(exact(1, 32, 0.01)), make_record(exact(1, 64, 0.01))};
  auto records = quiet;
  records.push_back(paused(make_record(exact(1, 64, 0.009)), 4));  // its other steps are even faster
  records.back().repeat = 1;
  const auto cells = make_cells(records);
  const auto point = operating_point(pointers(cells));
  ASSERT_NE(point.best(), nullptr);
  EXPECT_EQ(point.best()->local_batch, 64);
  EXPECT_EQ(point.best()->records.size(), 1u);
  EXPECT_DOUBLE_EQ(point.best()->images_per_s.median, 6400);
  ASSERT_EQ(point.best()->lost_repeats.size(), 1u);
  EXPECT_THAT(point.best()->lost_repeats.front(), ::testing::HasSubstr("the run stood still for 4.0 s"));
  // Paused in its only repeat, the best cannot be told from the other: it may be as fast as without the
  // pause.
  const std::vector<Record> only{quiet[0], paused(quiet[1], 4)};
  const auto of_only = make_cells(only);
  const auto undecided = operating_point(pointers(of_only));
  EXPECT_GE(possible_rate(of_only[1], pointers(of_only)), 6400);
  EXPECT_FALSE(undecided.choice.constant_load);
}

TEST(OperatingPoint, IsTheFastestCompleteCellWithCores) {
  auto shared = exact(4, 64, 0.1);
  shared.oversubscribed = true;
  std::vector<Record> records{make_record(exact(1, 64, 0.4)), make_record(exact(2, 64, 0.4)),
                              make_record(shared), make_record(exact(2, 256, 0.1))};
  records.back().status = "interrupted";
  const auto cells = make_cells(records);
  const auto point = operating_point(pointers(cells));
  ASSERT_NE(point.best(), nullptr);
  EXPECT_EQ(point.best()->record().id, "scale-weak-w2-b64-r0");
  EXPECT_EQ(point.eligible.size(), 2U);
  std::vector<std::string> why;
  for (const auto& one : point.left_out) why.push_back(one.why);
  EXPECT_THAT(why, testing::UnorderedElementsAre("4 threads on 2 cores", "interrupted"));
}

// Two workers on one GPU may be faster than one, and are no scaling.
TEST(OperatingPoint, IsNoCellThatSharesAGpu) {
  std::vector<Record> records;
  for (const int workers : {1, 4}) {
    auto run = exact(workers, 64, 0.1);
    run.oversubscribed = workers == 4;
    records.push_back(make_record(run));
    records.back().device = "cuda";
    records.back().memory.device = Record::Memory::Device{.workers = workers};
  }
  const auto cells = make_cells(records);
  const auto point = operating_point(pointers(cells));
  ASSERT_NE(point.best(), nullptr);
  EXPECT_EQ(point.best()->workers, 1);
  ASSERT_EQ(point.left_out.size(), 1U);
  EXPECT_EQ(point.left_out.front().why, "several workers on one GPU");
  EXPECT_STREQ(point.best()->needs(), "a GPU for each worker");
  // A GPU each, but two cores for four threads.
  records[1].memory.device->workers = 1;
  const auto without_cores = make_cells(records);
  EXPECT_FALSE(without_cores[1].shares_gpus());
  EXPECT_STREQ(without_cores[1].shares(), "more worker threads than cores");
}

TEST(OperatingPoint, IsNeverBelowARecordedLowerBound) {
  const std::vector<Record> records{make_record(exact(2, 64, 0.4)),
                                    disturbed(make_record(exact(2, 128, 0.5)))};
  const auto cells = make_cells(records);
  const auto choice = operating_point(pointers(cells)).choice;
  ASSERT_NE(choice.best, nullptr);
  EXPECT_EQ(choice.best->local_batch, 128);
  EXPECT_EQ(choice.best->disturbance, measure::Disturbance::disturbed) << "its rate is a lower bound";
  EXPECT_TRUE(choice.unsettled.empty()) << "the other one was undisturbed, and is slower";
  EXPECT_TRUE(choice.shows_slower(cells[0]));
}

TEST(OperatingPoint, NamesWhatMayBeFasterWithoutOthers) {
  // With one competitor a cell may be twice as fast: that reaches the best from half of its rate on.
  const std::vector<Record> records{make_record(exact(2, 64, 0.4)),
                                    disturbed(make_record(exact(2, 32, 0.39))),
                                    disturbed(make_record(exact(2, 16, 0.4))),
                                    unknown(make_record(exact(2, 48, 0.4))), make_record(exact(2, 8, 0.06))};
  const auto cells = make_cells(records);
  const auto choice = operating_point(pointers(cells)).choice;
  EXPECT_EQ(choice.best->local_batch, 64);
  EXPECT_THAT(batches_of(choice.unsettled), testing::ElementsAre(48, 32));
  EXPECT_FALSE(choice.shows_slower(*choice.unsettled.front()));
  EXPECT_TRUE(choice.shows_slower(cells[2])) << "16, with a quarter of the best's rate";
  EXPECT_FALSE(choice.constant_load);
}

TEST(OperatingPoint, CountsTheCompetitors) {
  const std::vector<Record> records{make_record(exact(2, 64, 0.4)),
                                    disturbed(make_record(exact(2, 16, 0.4)), 2.5)};
  const auto cells = make_cells(records);
  EXPECT_THAT(batches_of(operating_point(pointers(cells)).choice.unsettled), testing::ElementsAre(16))
      << "three others leave a worker a quarter of its core";
}

TEST(OperatingPoint, ComparesCellsUnderAConstantLoad) {
  const std::vector<Record> records{disturbed(make_record(exact(2, 64, 0.4)), 1.0),
                                    disturbed(make_record(exact(2, 32, 0.3)), 0.8)};
  const auto cells = make_cells(records);
  const auto choice = operating_point(pointers(cells)).choice;
  EXPECT_TRUE(choice.constant_load);
  EXPECT_TRUE(choice.unsettled.empty());
  EXPECT_EQ(choice.best->local_batch, 64);
  const std::vector<Record> growing{records[0], disturbed(records[1], 0.6)};
  const auto others = make_cells(growing);
  EXPECT_FALSE(operating_point(pointers(others)).choice.constant_load);
}

// Its own quiet run is slower, so it reaches what it reached beside others.
TEST(OperatingPoint, KeepsDisturbedRunsThatWereFaster) {
  auto faster = exact(1, 16, 0.1);
  faster.repeat = 1;
  const std::vector<Record> records{make_record(exact(1, 16, 0.12)), disturbed(make_record(faster)),
                                    make_record(exact(1, 64, 0.45))};
  const auto cells = make_cells(records);
  ASSERT_EQ(cells[0].records.size(), 2U);
  EXPECT_EQ(cells[0].disturbance, measure::Disturbance::none);
  const auto choice = operating_point(pointers(cells)).choice;
  EXPECT_EQ(choice.best->local_batch, 16);
}

TEST(OperatingPoint, IsNoTieWithALowerBound) {
  const std::vector<Record> records{make_record(exact(1, 16, 0.16)),
                                    disturbed(make_record(exact(1, 64, 0.642)), 1.0)};
  const auto cells = make_cells(records);
  EXPECT_THAT(batches_of(operating_point(pointers(cells)).choice.unsettled), testing::ElementsAre(64));
}

TEST(OperatingPoint, CountsTheCoresThatOthersLeft) {
  const std::vector<Record> records{make_record(exact(1, 16, 0.016)),
                                    disturbed(make_record(exact(1, 64, 0.256)), 1.8)};
  const auto cells = make_cells(records);
  EXPECT_NEAR(possible_rate(cells[1], pointers(cells)), 250 / 0.2, 1);
  EXPECT_THAT(batches_of(operating_point(pointers(cells)).choice.unsettled), testing::ElementsAre(64));
}

TEST(BestCell, IsThatOfTheFastestSubject) {
  std::vector<Record> records{make_record(exact(1, 64, 0.4)), make_record(exact(1, 32, 0.1))};
  records[1].model.name = "other";
  records[1].settings["model"] = "other";
  const auto best = best_cell(records);
  ASSERT_TRUE(best.has_value());
  EXPECT_DOUBLE_EQ(best->images_per_s, 320);
  EXPECT_FALSE(best_cell({}).has_value());
}

TEST(OperatingPoint, OfExactTiesHasTheNarrowerIntervalThenTheSmallerBatch) {
  // 64 / 0.4 = 128 / 0.8 images/s.
  const std::vector<Record> records{make_record(exact(1, 128, 0.8)), make_record(exact(1, 64, 0.4)),
                                    make_record(exact(1, 32, 0.2, {0.9, 1, 1, 1, 1.1}))};
  const auto cells = make_cells(records);
  EXPECT_EQ(operating_point(pointers(cells)).best()->local_batch, 64);
}

TEST(OperatingPoint, IsDecidedWhereNoIntervalReachesIt) {
  const std::vector<Record> records{make_record(exact(1, 64, 0.4)), make_record(exact(1, 128, 0.9))};
  const auto cells = make_cells(records);
  EXPECT_EQ(operating_point(pointers(cells)).choice.standing, Standing::decided);
}

TEST(OperatingPoint, IsATieWithinATwentiethAndElseNotDecided) {
  const std::vector<double> narrow{0.99, 1, 1, 1, 1, 1.01}, wide{0.8, 1, 1, 1, 1, 1.2};
  const std::vector<Record> records{make_record(exact(1, 64, 0.4, narrow)),
                                    make_record(exact(1, 128, 0.804, narrow))};
  const auto cells = make_cells(records);
  const auto tie = operating_point(pointers(cells)).choice;
  EXPECT_EQ(tie.standing, Standing::tie);
  ASSERT_EQ(tie.overlap.size(), 1U);
  EXPECT_EQ(tie.overlap[0]->local_batch, 128);
  const std::vector<Record> noisy{make_record(exact(1, 64, 0.4, wide)),
                                  make_record(exact(1, 128, 0.9, wide))};
  const auto others = make_cells(noisy);
  EXPECT_EQ(operating_point(pointers(others)).choice.standing, Standing::not_decided);
}

TEST(OperatingPoint, OfTrainingsAloneIsOneOfThem) {
  auto run = exact(1, 64, 0.4);
  run.kind = "train";
  const std::vector<Record> one{make_record(run)};
  const auto cells = make_cells(one);
  EXPECT_EQ(operating_point(pointers(cells)).best(), &cells[0]);
  const std::vector<Record> both{make_record(run), make_record(exact(1, 64, 0.8))};
  const auto of_both = make_cells(both);
  EXPECT_EQ(operating_point(pointers(of_both)).best()->kind, "scale") << "timed for its own sake";
}

TEST(OperatingPoint, HasTheOtherBatchesOfItsSetUpAndTheBestOfEachNumberOfWorkers) {
  const std::vector<Record> records{make_record(exact(1, 64, 0.5)), make_record(exact(1, 128, 0.9)),
                                    make_record(exact(2, 64, 0.5)), make_record(exact(2, 128, 0.95))};
  const auto cells = make_cells(records);
  const auto point = operating_point(pointers(cells));
  ASSERT_EQ(point.best()->global_batch, 256);
  const auto batches = other_batches(point);
  ASSERT_EQ(batches.size(), 2U);
  EXPECT_EQ(batches[0]->local_batch, 64);
  EXPECT_EQ(batches[1], point.best());
  const auto workers = other_workers(point);
  ASSERT_EQ(workers.size(), 2U);
  EXPECT_EQ(workers[0]->local_batch, 128) << "the faster of one worker";
}

TEST(Cells, SetDisturbedRepeatsAsideWhereOthersWereNot) {
  auto slow = make_record(exact(2, 64, 0.8));
  slow.repeat = 1;
  const std::vector<Record> records{make_record(exact(2, 64, 0.4)), disturbed(slow)};
  const auto cells = make_cells(records);
  ASSERT_EQ(cells.size(), 1U);
  EXPECT_DOUBLE_EQ(cells[0].step_s.median, 0.4);
  ASSERT_EQ(cells[0].lost_repeats.size(), 1U);
  EXPECT_EQ(cells[0].lost_repeats[0], "other programs kept 0.80 of 2 cores busy in repeat 1");
  EXPECT_EQ(cells[0].disturbance, measure::Disturbance::none);
  const std::vector<Record> all{disturbed(slow)};
  EXPECT_EQ(make_cells(all)[0].disturbance, measure::Disturbance::disturbed);
}

TEST(Cells, KnowOfOthersByTheLargerPartOfTheirTime) {
  auto known = make_record(exact(2, 64, 0.4, {1, 1, 1, 1}));
  known.window.others_cores = 0.0;
  auto unsure = unknown(make_record(exact(2, 64, 0.4, {1, 1, 1})));
  unsure.repeat = 1;
  const std::vector<Record> mostly_known{known, unsure};
  const auto of_known = make_cells(mostly_known);
  EXPECT_EQ(of_known[0].disturbance, measure::Disturbance::none);
  EXPECT_EQ(of_known[0].records.size(), 1U) << "the unknown one is set aside";
  EXPECT_THAT(of_known[0].lost_repeats, testing::ElementsAre(testing::HasSubstr("too short")));
  auto second = unsure;
  second.repeat = 2;
  const std::vector<Record> mostly_unknown{known, unsure, second};
  EXPECT_EQ(make_cells(mostly_unknown)[0].disturbance, measure::Disturbance::maybe);
}

// A batch of 4 x 32 is a row of weak scaling at 32 and of strong scaling at 128: measured twice it had two
// values.
TEST(Cells, JoinWeakAndStrongCellsOfTheSameSizes) {
  auto weak = exact(4, 32, 0.4), strong = exact(4, 32, 0.5);
  strong.scaling = "strong";
  const std::vector<Record> records{make_record(weak), make_record(strong)};
  const auto cells = make_cells(records);
  ASSERT_EQ(cells.size(), 1U);
  EXPECT_EQ(cells[0].scaling, kBothScalings);
  EXPECT_EQ(cells[0].part(), "scale");
  EXPECT_EQ(cells[0].records.size(), 2U);
}

}  // namespace
}  // namespace paceline::analysis
