#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "comm/make.h"
#include "engine/make.h"
#include "study/study.h"

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
    runner_.backend = {
        .compile = [](const graph::Graph& graph,
                      const engine::CompileOptions& how) { return engine::compile("cpu", graph, how); },
        .plan = [](const graph::Graph& graph,
                   const engine::CompileOptions& how) { return engine::plan("cpu", graph, how); },
        .communicators =
            [](int ranks, std::chrono::seconds deadline) {
              return comm::make_local(ranks, {.deadline = deadline});
            },
        .has_bf16_units = false};
    runner_.backend.libraries = {"made up 1.0"};
    runner_.directory = directory_;
    runner_.cell = [this](int, int, const std::string&, bool reused) { reused_ += reused ? 1 : 0; };
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
  int reused_ = 0;
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
                HasSubstr("was measured with --lr 0.1, and here it is 0.7: give another --out"));
  }
  EXPECT_EQ(measure::read_record(directory_ / "records" / "scale-weak-w1-b4-r0.json").created, before);
}

TEST_F(StudyDirectory, MovesAsideWhatAnotherProgramMeasured) {
  (void)scale({4});
  runner_.backend.libraries = {"made up 2.0"};
  (void)scale({4});
  EXPECT_EQ(reused_, 0);
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
  runner_.backend.communicators =
      [](int, std::chrono::seconds) -> std::vector<std::unique_ptr<comm::Communicator>> {
    base::fail(base::ErrorKind::comm, "a worker is lost");
  };
  const auto records = scale({4});
  EXPECT_EQ(records.front().status, "failed");
  EXPECT_THAT(records.front().reason, HasSubstr("a worker is lost"));
}

TEST_F(StudyDirectory, SweepTakesUnitsOfShardsAndSaysWhichBatchBreaksThem) {
  base_.shard = 16;
  const auto cells =
      sweep_cells(base_, {.batches = {8, 16}, .automatic_batches = false, .repeats = 1}, runner_.backend);
  ASSERT_GE(cells.size(), 2u);
  EXPECT_THAT(cells[0].skip, HasSubstr("shard"));
  EXPECT_EQ(cells[1].skip, "");
}

}  // namespace
}  // namespace paceline::study
