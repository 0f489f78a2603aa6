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

Record disturbed(Record record) {
  record.window.others_cores = 0.8;
  return record;
}

TEST(OperatingPoint, IsTheFastestThatIsCompleteUndisturbedAndHasACoreForEachThread) {
  auto shared = exact(4, 64, 0.1);
  shared.oversubscribed = true;
  std::vector<Record> records{make_record(exact(1, 64, 0.4)), make_record(exact(2, 64, 0.4)),
                              make_record(shared), disturbed(make_record(exact(2, 128, 0.4))),
                              make_record(exact(2, 256, 0.1))};
  records.back().status = "interrupted";
  const auto cells = make_cells(records);
  const auto point = operating_point(pointers(cells));
  ASSERT_NE(point.best(), nullptr);
  EXPECT_EQ(point.best()->record().id, "scale-weak-w2-b64-r0");
  EXPECT_EQ(point.eligible.size(), 2U);
  std::vector<std::string> why;
  for (const auto& one : point.left_out) why.push_back(one.why);
  EXPECT_THAT(why, testing::UnorderedElementsAre("4 threads on 2 cores", "other programs were at work",
                                                 "interrupted"));
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
  EXPECT_EQ(cells[0].others, Others::unknown);
  const std::vector<Record> all{disturbed(slow)};
  EXPECT_EQ(make_cells(all)[0].others, Others::busy);
}

TEST(Cells, KnowOfOthersByTheLargerPartOfTheirTime) {
  auto known = make_record(exact(2, 64, 0.4, {1, 1, 1, 1}));
  known.window.others_cores = 0.0;
  auto unknown = make_record(exact(2, 64, 0.4, {1, 1, 1}));
  unknown.repeat = 1;
  const std::vector<Record> mostly_known{known, unknown};
  EXPECT_EQ(make_cells(mostly_known)[0].others, Others::none);
  auto second = unknown;
  second.repeat = 2;
  const std::vector<Record> mostly_unknown{known, unknown, second};
  EXPECT_EQ(make_cells(mostly_unknown)[0].others, Others::unknown);
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
