#include "cli/commands/time_left.h"

#include <gtest/gtest.h>

namespace paceline::cli {
namespace {

study::PlannedCell timed(std::int64_t batch, double window_seconds) {
  study::PlannedCell cell{.id = "sweep", .kind = "sweep"};
  cell.options.local_batch = batch;
  cell.options.window_steps = 10;
  cell.options.warmup_steps = 1;
  cell.options.window_seconds = window_seconds;
  return cell;
}

measure::Record done(std::int64_t samples) {
  measure::Record record;
  record.status = "complete";
  record.data.train_samples = 50000;
  record.window.warmup_steps = 1;
  record.window.samples = samples;
  return record;
}

TEST(TimeLeft, IsNothingBeforeACellWasRun) {
  const std::vector<study::PlannedCell> cells{timed(32, 0)};
  const TimeLeft left(cells);
  EXPECT_EQ(left.text(0), "");
}

TEST(TimeLeft, GoesBySamples) {
  const std::vector<study::PlannedCell> cells{timed(32, 0), timed(64, 0), timed(128, 0)};
  TimeLeft left(cells);
  left.note(cells[0], done(320), 11);  // 11 steps of 32
  EXPECT_NEAR(left.seconds(1), 22 + 44, 1e-9);
  EXPECT_EQ(left.text(1), ", about 66 s left");
}

// A sweep of windows that end by their time was said to take many times as long as it did.
TEST(TimeLeft, KnowsThatAWindowEndsByItsTime) {
  const std::vector<study::PlannedCell> cells{timed(512, 15), timed(1024, 15), timed(8192, 15)};
  TimeLeft left(cells);
  left.note(cells[0], done(3 * 512), 4 * 5.0);  // 5 s a step: three of the ten were timed
  EXPECT_NEAR(left.seconds(1), 4 * 10 + 4 * 80, 1e-9) << "a warm-up and three steps, the fewest";
  TimeLeft quick(cells);
  quick.note(cells[0], done(10 * 512), 11 * 0.5);
  EXPECT_NEAR(quick.seconds(1), 11 * 1 + 8 + 24, 1e-9) << "steps of 1 s: all ten; of 8 s: three";
}

TEST(TimeLeft, CountsTrainingsByTheirLengthAndSkippedCellsNot) {
  study::PlannedCell half{.id = "converge", .kind = "converge"};
  half.options.global_batch = 500;
  half.options.epochs = 0.5;
  study::PlannedCell skipped = timed(100000, 0);
  skipped.skip = "exceeds the data set";
  const std::vector<study::PlannedCell> cells{half, half, skipped};
  TimeLeft left(cells);
  measure::Record record = done(0);
  record.epochs.push_back({.epoch = 1, .updates = 50});
  left.note(cells[0], record, 25);
  EXPECT_NEAR(left.seconds(1), 25, 1e-9);
}

TEST(TimeLeft, LearnsNothingFromACellThatWasKept) {
  const std::vector<study::PlannedCell> cells{timed(32, 0), timed(64, 0)};
  TimeLeft left(cells);
  left.begin(study::Begin::kept);
  left.end(cells[0], done(320));
  EXPECT_EQ(left.text(1), "");
}

}  // namespace
}  // namespace paceline::cli
