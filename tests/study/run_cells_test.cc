#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "study/study.h"
#include "train/made_up_machine.h"

namespace paceline::study {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class StudyDirectory : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(directory_);
    base_.model = "resnet8-cifar";
    base_.data = "synthetic,train=64,test=16";
    base_.threads = 1;
    base_.window_steps = 1;
    base_.evaluate_every = 0;
    runner_.backend = train::backend_of("cpu");
    runner_.backend.libraries = {"made up 1.0"};
    runner_.directory = directory_;
    runner_.cell = [this](int, int, const std::string&, Begin how) {
      reused_ += how == Begin::kept ? 1 : 0;
      resumed_ += how == Begin::resumed ? 1 : 0;
    };
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::vector<measure::Record> scale(const std::vector<std::int64_t>& batches) {
    reused_ = 0;
    return run_cells(scale_cells(base_, {.workers = {1}, .batches = batches, .mode = "weak", .repeats = 1}),
                     runner_);
  }

  fs::path directory_ = fs::temp_directory_path() / ("paceline-study-" + std::to_string(::getpid()));
  train::Options base_;
  Runner runner_;
  int reused_ = 0, resumed_ = 0;
};

TEST_F(StudyDirectory, KeepsWhatTheSameProgramMeasured) {
  EXPECT_EQ(scale({4}).size(), 1u);
  EXPECT_EQ(reused_, 0);
  EXPECT_EQ(scale({4, 8}).size(), 2u);
  EXPECT_EQ(reused_, 1);
}

TEST_F(StudyDirectory, IsNotOverwrittenByOtherSettings) {
  (void)scale({4});
  const auto before = measure::read_record(directory_ / "records" / "scale-weak-w1-b4-r0.json").created;
  base_.lr = 0.7;
  try {
    (void)scale({4});
    FAIL() << "other settings overwrote a record";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("was measured with --lr 0.1, but here it is 0.7: give another --out"));
  }
  EXPECT_EQ(measure::read_record(directory_ / "records" / "scale-weak-w1-b4-r0.json").created, before);
}

// A setting that only some choices read is absent elsewhere: records of an emulated link were taken for the
// machine's own as soon as the same command was given without it.
TEST_F(StudyDirectory, IsNotTakenForTheSameWhereASettingIsNoLongerGiven) {
  base_.emulate_link = "latency=1ms";
  (void)scale({4});
  base_.emulate_link.clear();
  const auto refusal = [&]() -> std::string {
    try {
      (void)scale({4});
    } catch (const base::Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal(), HasSubstr("was measured with --emulate-link latency=1ms, but here it is not given"));
  base_.emulate_link = "latency=1ms";
  (void)scale({4});
  EXPECT_EQ(reused_, 1);
  base_.emulate_straggler = "rank=0,slower=2x";
  EXPECT_THAT(refusal(),
              HasSubstr("was measured without --emulate-straggler, but here it is rank=0,slower=2x"));
}

TEST_F(StudyDirectory, MovesAsideWhatAnotherProgramMeasured) {
  (void)scale({4});
  runner_.backend.libraries = {"made up 2.0"};
  (void)scale({4});
  EXPECT_EQ(reused_, 0);
  const auto earlier = fs::directory_iterator(directory_ / "earlier");
  EXPECT_EQ(std::distance(fs::begin(earlier), fs::end(earlier)), 1);
}

// A machine of the same name whose processor came to lack its units, for example in another virtual machine.
TEST_F(StudyDirectory, DoesNotMixThePrecisionsThatAutoTakesOnTwoKindsOfProcessors) {
  base_.precision = "auto";
  runner_.backend.auto_precision = engine::Precision::bf16;
  EXPECT_EQ(scale({4}).front().precision, "bf16");
  (void)scale({4});
  EXPECT_EQ(reused_, 1) << "the same kind: kept";
  runner_.backend.auto_precision = engine::Precision::f32;
  EXPECT_EQ(scale({4}).front().precision, "fp32");
  EXPECT_EQ(reused_, 0) << "another kind: measured again";
  const auto earlier = fs::directory_iterator(directory_ / "earlier");
  EXPECT_EQ(std::distance(fs::begin(earlier), fs::end(earlier)), 1);
}

TEST_F(StudyDirectory, SweepEndsWithTheData) {
  const auto cells =
      sweep_cells(base_, {.batches = {16}, .automatic_batches = true, .repeats = 1}, runner_.backend);
  ASSERT_EQ(cells.size(), 4u);  // 16, 32, 64, and 128, which is more than there is
  EXPECT_THAT(cells.back().skip, HasSubstr("exceeds the data set of 64 training samples"));
  const auto records = run_cells({cells.back()}, runner_);
  EXPECT_EQ(records.front().data.train_samples, 64);
  EXPECT_EQ(records.front().status, "skipped");
}

// Two more batches than the memory holds, in parts that it holds; with several repeats all of them.
TEST_F(StudyDirectory, SweepGoesOnBeyondTheMemory) {
  base_.data = "synthetic,train=300000000,test=16";
  const Axes axes{.batches = {16384}, .automatic_batches = true, .batch_factor = 2, .repeats = 2};
  const auto cells = sweep_cells(base_, axes, runner_.backend);
  std::vector<PlannedCell> in_parts;
  std::int64_t largest = 0, refused = 0;
  for (const auto& cell : cells) {
    if (cell.options.micro_batch > 0)
      in_parts.push_back(cell);
    else if (cell.skip.empty())
      largest = std::max(largest, cell.options.local_batch);
    else if (!cell.fits)
      refused = cell.options.local_batch;
  }
  ASSERT_EQ(refused, 2 * largest) << "does not fit as a whole";
  ASSERT_EQ(in_parts.size(), 4U);
  for (std::size_t i = 0; i < in_parts.size(); ++i) {
    const auto& cell = in_parts[i];
    EXPECT_EQ(cell.options.local_batch, (i % 2 + 1) * refused);
    EXPECT_LE(cell.options.micro_batch, largest);
    EXPECT_EQ(cell.options.micro_batch, in_parts[i % 2].options.micro_batch);
    EXPECT_EQ(cell.skip, "");
    EXPECT_EQ(cell.id,
              fmt::format("sweep-b{}-m{}-r{}", cell.options.local_batch, cell.options.micro_batch, i / 2));
    EXPECT_THAT(cell.note, HasSubstr("does not fit into the memory: it is computed in micro-batches"));
  }
  base_.shard = 64;  // a worker computes shards already
  for (const auto& cell : sweep_cells(base_, axes, runner_.backend)) EXPECT_EQ(cell.options.micro_batch, 0);
}

// The largest batch was found to fit, some pages were used meanwhile, and the report said that memory ends
// there and that the largest that fits is the smallest of the sweep; two processes found two sizes and
// refused to go on together.
TEST_F(StudyDirectory, TheLargestBatchThatFitsStaysThatWhenMemoryIsUsed) {
  base_.data = "synthetic,train=3000000,test=16";
  const auto cells = sweep_cells(base_, {.batches = {4}, .repeats = 1}, runner_.backend);
  ASSERT_EQ(cells.size(), 2u);
  EXPECT_TRUE(cells[1].fits);
  auto larger = cells;
  larger[1].options.local_batch += 1'000'000;  // as if a gigabyte had gone
  larger[1].id = "sweep-b1-r0";
  EXPECT_EQ(agreed_on(larger), agreed_on(cells));
  const auto records = run_cells(larger, runner_);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[1].status, "skipped");
  EXPECT_GE(records[1].memory.available_bytes, records[1].memory.plan_bytes);
  larger[0].id += "0";
  EXPECT_NE(agreed_on(larger), agreed_on(cells));
}

TEST_F(StudyDirectory, ScalingSkipsWhatASweepSkips) {
  const auto records = scale({4, 128});
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].status, "complete");
  EXPECT_EQ(records[1].status, "skipped");
  EXPECT_THAT(records[1].reason, HasSubstr("exceeds the data set of 64 training samples"));
  base_.data = "synthetic,train=100000000,test=16";
  const auto large = scale({90000000});
  EXPECT_EQ(large.front().status, "skipped") << large.front().reason;
  EXPECT_THAT(large.front().reason, HasSubstr("memory: the plan for 1 worker x"));
}

TEST_F(StudyDirectory, WhatGoesWrongWhileItRunsHasFailed) {
  auto backend = train::backend_of("cpu");
  backend.made_up->on_communicators =
      [](int, std::chrono::seconds) -> std::vector<std::unique_ptr<comm::Communicator>> {
    base::fail(base::ErrorKind::comm, "a worker is lost");
  };
  runner_.backend.machine = backend.machine;
  const auto records = scale({4});
  EXPECT_EQ(records.front().status, "failed");
  EXPECT_THAT(records.front().reason, HasSubstr("a worker is lost"));
}

TEST_F(StudyDirectory, ACompleteOneForgetsWhatALongerOneDidNotBegin) {
  std::stop_source stop;
  runner_.stop = stop.get_token();
  runner_.done = [&](const measure::Record&) { stop.request_stop(); };
  EXPECT_EQ(scale({4, 8, 16}).size(), 3U);
  const auto left = [&] {
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(runner_.directory / "records"))
      files += entry.path().extension() == ".json";
    return files;
  };
  EXPECT_EQ(left(), 3U);
  runner_.stop = {};
  runner_.done = {};
  EXPECT_EQ(scale({4, 8}).size(), 2U);
  EXPECT_EQ(left(), 2U);
}

// A stopped study's report looked like one of a smaller study: nothing said what had been left.
TEST_F(StudyDirectory, StoppedLeavesARecordOfEveryCellThatItDidNotBegin) {
  std::stop_source stop;
  runner_.stop = stop.get_token();
  runner_.done = [&](const measure::Record&) { stop.request_stop(); };
  const auto records = scale({4, 8, 16});
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].status, "complete");
  for (const std::size_t i : {1u, 2u}) {
    EXPECT_EQ(records[i].status, "interrupted");
    EXPECT_EQ(records[i].reason, kNotBegun);
    EXPECT_EQ(records[i].model.name, "resnet8-cifar");
    const auto there = measure::read_record(directory_ / "records" / (records[i].id + ".json"));
    EXPECT_EQ(there.reason, kNotBegun);
  }
  // What an earlier run completed is kept and not overwritten, and the same command goes on.
  runner_.done = nullptr;
  runner_.stop = {};
  EXPECT_EQ(scale({16}).at(0).status, "complete");
  std::stop_source at_once;
  at_once.request_stop();
  runner_.stop = at_once.get_token();
  const auto again = scale({4, 8, 16});
  ASSERT_EQ(again.size(), 3u);
  EXPECT_EQ(again[0].status, "complete");
  EXPECT_EQ(again[1].reason, kNotBegun);
  EXPECT_EQ(again[2].status, "complete");
  runner_.stop = {};
  for (const auto& record : scale({4, 8, 16})) EXPECT_EQ(record.status, "complete");
}

class TrainingOfAStudy : public StudyDirectory {
 protected:
  void SetUp() override {
    StudyDirectory::SetUp();
    base_.window_steps = 0;
    base_.epochs = 4;
    base_.evaluate_every = 1;
  }
  /// Stopped in step `stop_in` (from 1), where that is given.
  measure::Record converge(int stop_in = 0) {
    resumed_ = 0;
    steps_ = 0;
    std::stop_source stop;
    runner_.stop = stop.get_token();
    runner_.progress.step = [&, stop_in](std::int64_t, std::int64_t, double, double) {
      if (++steps_ == stop_in) stop.request_stop();
    };
    const auto records = run_cells(
        converge_cells(base_, {.baseline_batch = 16, .large_batch = 32, .variants = {"baseline"}}), runner_);
    return records.at(0);
  }
  int steps_ = 0;
};

TEST_F(TrainingOfAStudy, GoesOnFromItsLastCheckpointAsIfItHadNotBeenStopped) {
  const auto directory = runner_.directory;
  runner_.directory = directory / "whole";
  const auto whole = converge();
  runner_.directory = directory / "parts";
  EXPECT_EQ(converge(2).status, "interrupted");  // in the first epoch
  EXPECT_EQ(converge(8).status, "interrupted");
  EXPECT_EQ(resumed_, 1);
  const auto training = runner_.directory / "trainings" / whole.id;
  EXPECT_TRUE(fs::exists(training / "record.json"));
  const auto rest = converge();
  EXPECT_EQ(resumed_, 1);
  EXPECT_LT(steps_, 16 - 8);  // what was done is not done again
  EXPECT_EQ(rest.status, "complete");
  ASSERT_EQ(rest.epochs.size(), 4u);
  EXPECT_EQ(rest.epochs[3].test_loss, whole.epochs[3].test_loss);
  EXPECT_NEAR(rest.epochs[2].train_loss, whole.epochs[2].train_loss, 1e-9);
  EXPECT_FALSE(fs::exists(training));
}

TEST_F(TrainingOfAStudy, DoesItsLastEpochAgainWhereOnlyItsRecordIsMissing) {
  const auto whole = converge();
  const auto training = directory_ / "trainings" / whole.id;
  const auto record = directory_ / "records" / (whole.id + ".json");
  (void)converge();  // kept: nothing to do
  EXPECT_EQ(steps_, 0);
  // As a kill leaves it after the last checkpoint: the training is there with all its epochs, its record is
  // not.
  fs::remove(record);
  (void)converge(13);
  auto begun = measure::read_record(training / "record.json");
  begun.epochs = whole.epochs;
  measure::write_record(training / "record.json", begun);
  const auto again = converge();
  EXPECT_EQ(resumed_, 1);
  EXPECT_EQ(again.status, "complete");
  EXPECT_EQ(again.epochs.back().test_loss, whole.epochs.back().test_loss);
}

TEST_F(TrainingOfAStudy, IsNotGoneOnWithByOtherSettingsOrAnotherProgram) {
  const auto id = converge(10).id;
  base_.lr = 0.7;
  EXPECT_THROW((void)converge(), base::Error);
  base_.lr = train::Options{}.lr;
  runner_.backend.libraries = {"made up 2.0"};
  EXPECT_EQ(converge().status, "complete");
  EXPECT_EQ(resumed_, 0);
  EXPECT_EQ(steps_, 16);
  EXPECT_FALSE(fs::is_empty(directory_ / "earlier"));
}

TEST_F(TrainingOfAStudy, BeginsAnewWhereAutoTakesAnotherPrecision) {
  base_.precision = "auto";
  runner_.backend.auto_precision = engine::Precision::bf16;
  EXPECT_EQ(converge(10).precision, "bf16");
  runner_.backend.auto_precision = engine::Precision::f32;
  EXPECT_EQ(converge().precision, "fp32");
  EXPECT_EQ(resumed_, 0);
  EXPECT_EQ(steps_, 16);
  EXPECT_FALSE(fs::is_empty(directory_ / "earlier"));
}

// Evaluated inside epochs of four steps; stopped in the second cell, and gone on with.
TEST_F(TrainingOfAStudy, GoesOnToTheSameTarget) {
  base_.evaluate_steps = 3;
  base_.target = train::target_named("loss=2.2");
  const auto run = [&](const std::string& name, int stop_in) {
    runner_.directory = directory_ / name;
    steps_ = 0;
    std::stop_source stop;
    runner_.stop = stop.get_token();
    runner_.progress.step = [&, stop_in](std::int64_t, std::int64_t, double, double) {
      if (++steps_ == stop_in) stop.request_stop();
    };
    return run_cells(converge_cells(base_, {.repeats = 1, .batches = {16}, .rates = 2}), runner_);
  };
  const auto whole = run("whole", 0);
  const int in_first = static_cast<int>(whole.at(0).epochs.back().updates);
  EXPECT_EQ(run("parts", in_first + 2).at(1).status, "interrupted");
  const auto rest = run("parts", 0);
  ASSERT_EQ(rest.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(rest[i].status, "complete");
    ASSERT_TRUE(rest[i].target && whole[i].target);
    EXPECT_EQ(rest[i].target->update, whole[i].target->update);
    ASSERT_EQ(rest[i].evaluations->size(), whole[i].evaluations->size());
    for (std::size_t k = 0; k < whole[i].evaluations->size(); ++k)
      EXPECT_EQ((*rest[i].evaluations)[k].loss, (*whole[i].evaluations)[k].loss);
  }
}

TEST_F(StudyDirectory, SweepTakesUnitsOfShardsAndSaysWhichBatchBreaksThem) {
  base_.shard = 16;
  const auto cells =
      sweep_cells(base_, {.batches = {8, 16}, .automatic_batches = false, .repeats = 1}, runner_.backend);
  ASSERT_GE(cells.size(), 2u);
  EXPECT_THAT(cells[0].skip, HasSubstr("shard"));
  EXPECT_EQ(cells[1].skip, "");
}

/// What a study measures of the all-reduce alone, made up.
measure::Record made_up(const train::Options& options, const train::Backend& backend, double) {
  measure::Record record;
  record.created = measure::utc_now();
  record.environment = measure::environment(backend.libraries);
  record.workers = options.workers;
  record.collectives.emplace().push_back(
      {.collective = "all_reduce", .in_place = true, .bytes = 4096, .correct = true, .seconds = {1e-5}});
  return record;
}

TEST_F(StudyDirectory, KeepsTheAllReduceAloneToo) {
  Axes axes{.workers = {1, 2}};
  axes.cores_each = [](int) { return 1; };
  const auto cells = comm_cells(base_, axes, true);
  int measured = 0;
  runner_.collectives = [&](const train::Options& options, const train::Backend& backend, double seconds) {
    ++measured;
    EXPECT_EQ(seconds, 2);
    return made_up(options, backend, seconds);
  };
  const auto records = run_cells(cells, runner_);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].id, "comm-w2");
  EXPECT_EQ(records[0].kind, "comm");
  EXPECT_EQ(records[0].model.name, "resnet8-cifar") << "whose study it is of";
  EXPECT_EQ(run_cells(cells, runner_).size(), 1u);
  EXPECT_EQ(measured, 1) << "a study that goes on keeps it";
  EXPECT_EQ(reused_, 1);
}

TEST_F(StudyDirectory, LearnsThatAKeptCellServesTheSweepToo) {
  auto cells = scale_cells(base_, {.workers = {1}, .batches = {4}, .mode = "weak", .repeats = 1});
  EXPECT_FALSE(run_cells(cells, runner_).at(0).also);
  cells[0].also = "sweep";
  EXPECT_EQ(run_cells(cells, runner_).at(0).also, "sweep");
  EXPECT_EQ(reused_, 1);
  EXPECT_EQ(measure::read_record(directory_ / "records" / "scale-weak-w1-b4-r0.json").also, "sweep");
  cells[0].also.clear();
  EXPECT_EQ(run_cells(cells, runner_).at(0).also, "sweep") << "what another study knows stays";
}

}  // namespace
}  // namespace paceline::study
