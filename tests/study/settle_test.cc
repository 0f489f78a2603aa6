#include "study/settle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "golden/records.h"
#include "train/made_up_machine.h"

namespace paceline::study {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
namespace fs = std::filesystem;

train::Options timed() {
  train::Options options;
  options.threads = 1;
  options.window_steps = 5;
  return options;
}

/// Four set-ups (1 and 2 workers with 8 and 16 images each), two repeats each, and their spares behind them.
std::vector<PlannedCell> planned() {
  auto cells = scale_cells(timed(), {.workers = {1, 2}, .batches = {8, 16}, .mode = "weak", .repeats = 2});
  const auto spares = spare_cells(cells);
  cells.insert(cells.end(), spares.begin(), spares.end());
  return cells;
}

/// `images_per_s` in windows of about `wall_s`, of which others' work is known where it is given.
measure::Record measured(const PlannedCell& cell, double images_per_s, double wall_s = 0.5,
                         std::optional<double> others = {}) {
  const double step = static_cast<double>(cell.options.local_batch * cell.options.workers) / images_per_s;
  const auto steps = static_cast<std::size_t>(std::max(3.0, std::round(wall_s / step)));
  auto record = golden::make_record({.kind = cell.kind,
                                     .scaling = cell.scaling,
                                     .workers = cell.options.workers,
                                     .local_batch = cell.options.local_batch,
                                     .repeat = cell.repeat,
                                     .forward = step,
                                     .backward = 0,
                                     .update = 0,
                                     .data_wait = 0,
                                     .copy = 0,
                                     .other = 0,
                                     .jitter = std::vector<double>(steps, 1.0)});
  record.id = cell.id;
  record.window.others_cores = others;
  return record;
}

/// Of every cell that is no spare; the larger its sizes the faster.
std::vector<measure::Record> all_measured(const std::vector<PlannedCell>& cells, double wall_s = 0.5) {
  std::vector<measure::Record> records;
  for (const auto& cell : cells)
    if (!cell.is_spare)
      records.push_back(measured(
          cell, (cell.options.workers == 2 ? 230 : 100) + static_cast<double>(cell.options.local_batch),
          wall_s));
  return records;
}

std::vector<std::string> chosen_of(const std::vector<PlannedCell>& cells,
                                   const std::vector<measure::Record>& records) {
  std::vector<std::string> ids;
  for (const auto& repeat : choose_repeats(cells, records).chosen) ids.push_back(cells[repeat.place].id);
  return ids;
}

TEST(SpareCells, AreTwoForEachTimedSetUp) {
  const auto cells = planned();
  ASSERT_EQ(cells.size(), 8U + 2 * 4U);
  std::set<std::string> ids;
  for (const auto& cell : cells) ids.insert(cell.id);
  EXPECT_EQ(ids.size(), cells.size());
  for (std::size_t i = 8; i < cells.size(); ++i) {
    EXPECT_TRUE(cells[i].is_spare);
    EXPECT_THAT(cells[i].id, HasSubstr("-spare"));
    EXPECT_EQ(cells[i].repeat, i < 12 ? 2 : 3);
    EXPECT_GE(cells[i].options.window_seconds, 1);
    EXPECT_GT(cells[i].options.window_steps, 1000) << "or the window ends by its steps";
  }
  EXPECT_EQ(cells[8].id, "scale-weak-w1-b8-spare");
  EXPECT_EQ(cells[12].id, "scale-weak-w1-b8-spare2");
}

TEST(SpareCells, AreNoneOfTrainingsAndOfWhatIsSkipped) {
  train::Options base = timed();
  base.workers = 1;
  EXPECT_THAT(spare_cells(converge_cells(base, {.variants = {"baseline"}})), IsEmpty());
  EXPECT_THAT(
      spare_cells(scale_cells(base, {.workers = {3}, .batches = {8}, .mode = "strong", .repeats = 1})),
      IsEmpty());
}

TEST(SpareCells, AreSharedByWeakAndStrongScalingOfTheSameSizes) {
  const auto cells = scale_cells(timed(), {.workers = {1}, .batches = {8}, .mode = "both", .repeats = 3});
  EXPECT_EQ(spare_cells(cells).size(), 2U);
}

// A whole epoch is another unit of the window than steps are: such records are never joined.
TEST(SpareCells, StayWholeEpochsOfWholeEpochs) {
  train::Options base = timed();
  base.window_steps = train::Options::kWholeEpoch;
  const auto spares =
      spare_cells(scale_cells(base, {.workers = {1}, .batches = {8}, .mode = "weak", .repeats = 1}));
  ASSERT_EQ(spares.size(), 2U);
  EXPECT_EQ(spares[0].options.window_steps, train::Options::kWholeEpoch);
  EXPECT_EQ(spares[0].options.window_seconds, 0);
}

// A recipe's seconds are a limit of windows that end by their steps.
TEST(SpareCells, AreShortWhateverTheLimit) {
  train::Options base = timed();
  const auto seconds = [&](std::int64_t steps, double limit) {
    base.window_steps = steps;
    base.window_seconds = limit;
    return spare_cells(scale_cells(base, {.workers = {1}, .batches = {8}, .mode = "weak", .repeats = 1}))
        .front()
        .options.window_seconds;
  };
  EXPECT_EQ(seconds(20, 120), kSpareSeconds);
  EXPECT_EQ(seconds(20, 0), kSpareSeconds);
  EXPECT_EQ(seconds(train::Options::kManySteps, 10), 10) << "it ends by its time";
}

/// All windows long enough to know that nobody else worked.
std::vector<measure::Record> all_quiet(const std::vector<PlannedCell>& cells) {
  auto records = all_measured(cells, 1);  // six steps in each: enough for an interval of one repeat
  for (auto& record : records) record.window.others_cores = 0.05;
  return records;
}

void disturb(std::vector<measure::Record>& records, const std::string& part_of_id, double others = 0.75) {
  for (auto& record : records)
    if (record.id.find(part_of_id) != std::string::npos) record.window.others_cores = others;
}

TEST(Repeats, AreNoneOnAQuietMachine) {
  const auto cells = planned();
  EXPECT_THAT(chosen_of(cells, all_quiet(cells)), IsEmpty());
}

TEST(Repeats, BeginWithTheBestAndItsRivals) {
  const auto cells = planned();
  EXPECT_THAT(chosen_of(cells, all_measured(cells)),
              ElementsAre("scale-weak-w2-b16-spare", "scale-weak-w2-b8-spare", "scale-weak-w1-b16-spare"))
      << "the best, its rival, its baseline";
}

TEST(Repeats, LeaveOutWhatCannotBeTheBest) {
  const auto cells = planned();
  auto records = all_quiet(cells);
  disturb(records, "w1-b8");  // may reach 216 images/s, not the 246 of the best
  disturb(records, "w2-b8");
  EXPECT_THAT(chosen_of(cells, records), ElementsAre("scale-weak-w2-b8-spare"));
  records.clear();
  for (const auto& cell : cells)
    if (!cell.is_spare)
      records.push_back(measured(
          cell, cell.options.workers == 2 ? 500.0 - static_cast<double>(cell.options.local_batch) : 100, 2,
          0.0));
  disturb(records, "w1-b8");
  disturb(records, "w1");
  EXPECT_THAT(chosen_of(cells, records), ElementsAre("scale-weak-w1-b8-spare", "scale-weak-w1-b16-spare"))
      << "the baselines of weak and of strong scaling";
}

TEST(Repeats, SayWhatDisturbed) {
  const auto cells = planned();
  auto records = all_quiet(cells);
  disturb(records, "w2-b16");
  const auto repeats = choose_repeats(cells, records);
  ASSERT_EQ(repeats.chosen.size(), 1U);
  EXPECT_EQ(repeats.chosen[0].why, "other programs kept 0.75 of 2 cores busy");
  EXPECT_EQ(repeats.chosen[0].was, measure::Disturbance::disturbed);
}

// A disturbed repeat beside a quiet one is set aside.
TEST(Repeats, NeedNoneBesideAQuietOne) {
  const auto cells = planned();
  auto records = all_quiet(cells);
  disturb(records, "w2-b8-r1");
  EXPECT_THAT(chosen_of(cells, records), IsEmpty());
  disturb(records, "w2-b16-r1");
  EXPECT_THAT(chosen_of(cells, records), ElementsAre("scale-weak-w2-b16-spare")) << "the best wants two";
}

TEST(Repeats, ComeForEachThatStoodStill) {
  const auto cells = planned();
  auto records = all_quiet(cells);
  const auto pause = [](measure::Record& record) { record.window.paused_s = 4; };
  for (auto& record : records)
    if (record.id == "scale-weak-w1-b8-r0")
      pause(record);  // far from the best, and its other repeat is quiet
  const auto repeats = choose_repeats(cells, records);
  ASSERT_EQ(repeats.chosen.size(), 1U);
  EXPECT_EQ(cells[repeats.chosen[0].place].id, "scale-weak-w1-b8-spare");
  EXPECT_THAT(repeats.chosen[0].why, HasSubstr("the run stood still for 4.0 s"));
  records.push_back(measured(cells[8], 108, 1, 0.05));
  EXPECT_THAT(chosen_of(cells, records), IsEmpty());
  pause(records.back());
  EXPECT_THAT(chosen_of(cells, records), ElementsAre("scale-weak-w1-b8-spare2")) << "it stood still again";
}

TEST(Repeats, LookAgainAfterASpare) {
  const auto cells = planned();
  auto records = all_quiet(cells);
  disturb(records, "w2-b16");
  records.push_back(measured(cells[11], 246, 4, 1.0));  // disturbed again
  EXPECT_THAT(chosen_of(cells, records), ElementsAre("scale-weak-w2-b16-spare2"));
  records.push_back(measured(cells[15], 246, 4, 1.0));
  EXPECT_THAT(chosen_of(cells, records), IsEmpty()) << "it has no more";
  records.back().window.others_cores = 0.05;
  EXPECT_THAT(chosen_of(cells, records), IsEmpty()) << "now it is known";
}

TEST(Repeats, AreBounded) {
  auto cells = scale_cells(
      timed(),
      {.workers = {1}, .batches = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, .mode = "weak", .repeats = 1});
  const auto spares = spare_cells(cells);
  cells.insert(cells.end(), spares.begin(), spares.end());
  auto records = all_measured(cells);
  auto repeats = choose_repeats(cells, records);
  EXPECT_EQ(repeats.chosen.size(), kMostRepeats);
  EXPECT_EQ(repeats.left_out, 12 - kMostRepeats);
  EXPECT_EQ(choose_repeats(cells, records, 3).chosen.size(), 3U);
  for (const auto& repeat : repeats.chosen) records.push_back(measured(cells[repeat.place], 100, 4, 1));
  EXPECT_THAT(choose_repeats(cells, records).chosen, IsEmpty());
}

/// Runs for real, on made-up data.
class SettledStudy : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(directory_);
    base_.model = "resnet8-cifar";
    base_.data = "synthetic,train=64,test=16";
    base_.threads = 1;
    base_.window_steps = 1;
    base_.evaluate_every = 0;
    runner_.backend = train::backend_of("cpu");
    runner_.directory = directory_;
    runner_.chosen = [this](const std::vector<std::size_t>& places, const std::string& why) {
      EXPECT_THAT(places, ElementsAre(1U));
      said_ += why + "\n";
    };
    runner_.cell = [this](int, int, const std::string&, Begin how) { kept_ += how == Begin::kept ? 1 : 0; };
    cells_ = scale_cells(base_, {.workers = {1}, .batches = {4}, .mode = "weak", .repeats = 1});
    auto spares = spare_cells(cells_);
    spares[0].options.window_steps = 4;  // not by time: a test is short
    cells_.push_back(spares[0]);
  }
  void TearDown() override { fs::remove_all(directory_); }

  [[nodiscard]] fs::path spare_path() const { return directory_ / "records" / "scale-weak-w1-b4-spare.json"; }

  fs::path directory_ = fs::temp_directory_path() / ("paceline-settle-" + std::to_string(::getpid()));
  train::Options base_;
  std::vector<PlannedCell> cells_;
  Runner runner_;
  std::string said_;
  int kept_ = 0;
};

TEST_F(SettledStudy, RunsASpareSaysWhyAndKeepsItWhenItGoesOn) {
  const auto records = run_settled(cells_, runner_);
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[1].id, "scale-weak-w1-b4-spare");
  EXPECT_EQ(records[1].window.steps, 4);
  EXPECT_THAT(said_, HasSubstr("measuring 1 that decides again: 1 too short to see other programs"));
  EXPECT_THAT(measure::read_record(spare_path()).notes,
              testing::Contains("repeated: its windows were too short to see other programs"));
  EXPECT_EQ(kept_, 0);
  said_.clear();
  const auto again = run_settled(cells_, runner_);
  EXPECT_EQ(kept_, 2);
  EXPECT_EQ(said_, "");
  ASSERT_EQ(again.size(), 2U);
  EXPECT_EQ(again[1].created, records[1].created);
}

TEST_F(SettledStudy, LeavesNothingOfASpareThatIsNotNeeded) {
  cells_[1].options.window_steps = train::Options::kWholeEpoch;  // could not be longer
  const auto records = run_settled(cells_, runner_);
  EXPECT_EQ(records.size(), 1U);
  EXPECT_FALSE(fs::exists(spare_path()));
}

TEST_F(SettledStudy, StoppedItNamesTheSparesThatItHadChosenAndNoOthers) {
  std::stop_source stop;
  runner_.stop = stop.get_token();
  runner_.cell = [&](int, int, const std::string& id, Begin) {
    if (id.ends_with("-spare")) stop.request_stop();
  };
  const auto stopped = run_settled(cells_, runner_);
  ASSERT_EQ(stopped.size(), 2U);
  EXPECT_EQ(stopped[0].status, "complete");
  EXPECT_EQ(stopped[1].reason, kNotBegun);
  runner_.stop = {};
  runner_.cell = nullptr;
  const auto whole = run_settled(cells_, runner_);
  ASSERT_EQ(whole.size(), 2U);
  EXPECT_EQ(whole[1].status, "complete");

  fs::remove_all(directory_);
  std::stop_source at_once;
  at_once.request_stop();
  runner_.stop = at_once.get_token();
  const auto nothing = run_settled(cells_, runner_);
  ASSERT_EQ(nothing.size(), 1U) << "which spares are needed is not known";
  EXPECT_FALSE(fs::exists(spare_path()));
}

}  // namespace
}  // namespace paceline::study
