#include "cli/screen/remaining_time.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cli/recorded_study.h"

namespace paceline::cli {
namespace {

study::PlannedCell timed(std::int64_t batch, double window_seconds, int workers = 1) {
  study::PlannedCell cell{.id = "sweep", .kind = "sweep"};
  cell.options.local_batch = batch;
  cell.options.workers = workers;
  cell.options.threads = 1;
  cell.options.window_steps = 10;
  cell.options.warmup_steps = 1;
  cell.options.window_seconds = window_seconds;
  return cell;
}

measure::Record done(std::int64_t steps, double step_s) {
  measure::Record record;
  record.status = "complete";
  record.data.train_samples = 50000;
  record.window.warmup_steps = 1;
  record.window.steps = steps;
  record.ranks.push_back({.step_s = std::vector<double>(static_cast<std::size_t>(steps), step_s)});
  return record;
}

TEST(RemainingTime, IsUnknownBeforeACellWasRun) {
  const std::vector<study::PlannedCell> cells{timed(32, 0)};
  const RemainingTime left(cells, 2);
  EXPECT_FALSE(left.seconds());
  EXPECT_FALSE(left.shown());
}

TEST(RemainingTime, GoesByImagesUntilABatchWasMeasured) {
  const std::vector<study::PlannedCell> cells{timed(32, 0), timed(64, 0), timed(128, 0), timed(64, 0)};
  RemainingTime left(cells, 2);
  left.note(0, done(10, 1), 11);
  EXPECT_NEAR(*left.seconds(), 22 + 44 + 22, 1e-9);
  left.note(1, done(10, 1.5), 17);  // its images are cheaper; half a second beside the steps
  EXPECT_NEAR(*left.cost(3), 17, 1e-9) << "a repeat takes as long as the one before";
  EXPECT_NEAR(*left.cost(2), 11 * 3.0 + 0.25, 1e-9) << "images as cheap as of the next batch, 0.25 s beside";
}

// Two workers on two cores compute as many images in half the time.
TEST(RemainingTime, SharesTheWorkAmongTheCores) {
  const std::vector<study::PlannedCell> cells{timed(32, 0), timed(32, 0, 2), timed(32, 0, 4)};
  RemainingTime left(cells, 2);
  left.note(0, done(10, 1), 11);
  EXPECT_NEAR(*left.cost(1), 11, 1e-9) << "twice the images on twice the cores";
  EXPECT_NEAR(*left.cost(2), 22, 1e-9) << "four times the images on two cores";
}

// A sweep of windows that end by their time was said to take many times as long as it did.
TEST(RemainingTime, KnowsThatAWindowEndsByItsTime) {
  const std::vector<study::PlannedCell> cells{timed(512, 15), timed(1024, 15), timed(8192, 15)};
  RemainingTime left(cells, 1);
  left.note(0, done(3, 5), 4 * 5.0);  // 5 s a step: three of the ten were timed
  EXPECT_NEAR(*left.seconds(), 4 * 10 + 4 * 80, 1e-9) << "a warm-up and three steps, the fewest";
  RemainingTime quick(cells, 1);
  quick.note(0, done(10, 0.5), 11 * 0.5);
  EXPECT_NEAR(*quick.seconds(), 11 * 1 + 8 + 24, 1e-9) << "steps of 1 s: all ten; of 8 s: three";
}

TEST(RemainingTime, CountsTrainingsByTheirLengthAndSkippedCellsNot) {
  study::PlannedCell half{.id = "converge", .kind = "converge", .variant = "baseline"};
  half.training = half.id;
  half.options.global_batch = 500;
  half.options.epochs = 0.5;
  study::PlannedCell whole = half;
  whole.variant = "large";
  whole.options.epochs = 1;
  study::PlannedCell skipped = timed(100000, 0);
  skipped.skip = "exceeds the data set";
  const std::vector<study::PlannedCell> cells{half, whole, skipped};
  RemainingTime left(cells, 1);
  measure::Record record = done(1, 1);
  record.epochs.push_back({.epoch = 1, .updates = 50});
  left.note(0, record, 25);
  EXPECT_NEAR(*left.seconds(), 50, 1e-9);
}

TEST(RemainingTime, LearnsNothingFromACellThatWasKept) {
  const std::vector<study::PlannedCell> cells{timed(32, 0), timed(64, 0)};
  RemainingTime left(cells, 1);
  left.begin(0, study::Begin::kept);
  left.end(done(10, 1));
  EXPECT_FALSE(left.seconds());
}

TEST(RemainingTime, CountsWhatMayBeChosenByItsChanceAndThenByTheChoice) {
  std::vector<study::PlannedCell> cells{timed(32, 0), timed(32, 0), timed(32, 0)};
  for (const std::size_t i : {1U, 2U}) {
    cells[i].is_spare = true;
    cells[i].chance = 0.5;
  }
  RemainingTime left(cells, 1);
  left.note(0, done(10, 1), 11);
  EXPECT_NEAR(*left.seconds(), 11, 1e-9);
  left.choose({2});
  EXPECT_NEAR(*left.seconds(), 11, 1e-9);
  left.choose({1, 2});
  EXPECT_NEAR(*left.seconds(), 22, 1e-9);
}

TEST(RemainingTime, OfTheAllReduceAloneIsWhatWasPlannedForIt) {
  study::PlannedCell alone{.id = "comm-w2", .kind = "comm"};
  alone.options.workers = 2;
  alone.options.window_steps = 10;
  alone.collectives_s = 3;
  const std::vector<study::PlannedCell> cells{timed(32, 0), alone, alone, timed(32, 0)};
  RemainingTime left(cells, 2);
  left.note(0, done(10, 1), 11);
  EXPECT_NEAR(*left.seconds(), 3 + 3 + 11, 1e-9);
  measure::Record record;
  record.status = "complete";
  left.note(1, record, 4);
  EXPECT_NEAR(*left.seconds(), 4 + 11, 1e-9) << "as the last one took, and nothing is learned of images";
}

TEST(RemainingTime, IsShownWhenATenthIsDone) {
  const std::vector<study::PlannedCell> cells(20, timed(32, 0));
  RemainingTime left(cells, 1);
  left.note(0, done(10, 1), 11);
  EXPECT_FALSE(left.shown());
  left.note(1, done(10, 1), 11);
  EXPECT_NEAR(*left.shown(), 18 * 11, 1e-9);
}

// The durations of a real study on two cores, in its order. "About 6 min left" was said at its second cell,
// of a study of one minute: the cost of an image of batch 8 was taken for all.
TEST(RemainingTime, OfARecordedStudyIsWithinAFactorOfOneAndAHalfFromAQuarterOn) {
  const auto study = recorded_study();
  std::vector<study::PlannedCell> cells;
  double all = 0;
  for (const auto& cell : study) {
    cells.push_back(cell.planned);
    all += cell.seconds;
  }
  RemainingTime left(cells, 2);
  double spent = 0;
  for (std::size_t i = 0; i < study.size(); ++i) {
    left.note(i, study[i].record, study[i].seconds);
    spent += study[i].seconds;
    const double truth = all - spent;
    const auto shown = left.shown();
    if (spent < 0.05 * all) {
      EXPECT_FALSE(shown) << i;
    }
    if (spent < 0.25 * all || truth < 0.02 * all) continue;
    ASSERT_TRUE(shown) << i;
    EXPECT_LT(*shown, 1.5 * truth) << i << " cells, " << spent << " s of " << all;
    EXPECT_GT(*shown, truth / 1.5) << i << " cells, " << spent << " s of " << all;
  }
}

}  // namespace
}  // namespace paceline::cli
