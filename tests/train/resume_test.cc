#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "fixture.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/kept_record.h"
#include "train/checkpoint/resume_point.h"
#include "train/checkpoint/safetensors.h"

namespace paceline::train {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

/// Stopping, keeping, going on.
class Resume : public TrainingTest {};

// Stopped between two looks: the slow weights are others than the trained ones then, and must come back.
TEST_F(Resume, WithLookaheadResumedGivesTheBitsOfTheUninterruptedRun) {
  Options options = small();
  const std::string without = checkpoint_of(options, "without");
  options.lookahead = {.steps = 3, .keep = 0.7, .power = 1};
  options.shard = 4;
  const std::string whole = checkpoint_of(options, "whole");
  EXPECT_NE(whole, without);
  options.workers = 2;
  options.out = directory_ / "parts";
  std::stop_source stop;
  Progress progress;
  progress.step = [&](std::int64_t step, std::int64_t, double, double) {
    if (step == 4) stop.request_stop();
  };
  const auto part = train(options, stop.get_token(), progress);
  EXPECT_EQ(part.status, "interrupted");
  EXPECT_NE(part.epochs.back().updates % 3, 0);
  options.resume = options.out;
  EXPECT_EQ(checkpoint_of(options, "parts"), whole);
  EXPECT_THAT(whole, HasSubstr("lookahead.bn1.running_mean"));
}

// No further step follows a stop that is asked for in an evaluation, and the evaluation is not lost.
TEST_F(Resume, StoppedInAnEvaluationGoesOnWithIt) {
  for (const int workers : {1, 2})
    for (const std::int64_t last : {6, 10}) {  // the first epoch's evaluation, and the last one
      SCOPED_TRACE(testing::Message() << workers << " workers, after step " << last);
      Options options = small("whole");
      std::filesystem::remove_all(options.out);
      options.workers = workers;
      const auto whole = train(options);
      const auto bytes = base::read_file(options.out / "checkpoint-00000010.safetensors");
      options.out = directory_ / "parts";
      std::filesystem::remove_all(options.out);
      std::stop_source stop;
      Progress progress;
      progress.step = [&](std::int64_t step, std::int64_t, double, double) {
        if (step == last) stop.request_stop();
      };
      const auto part = train(options, stop.get_token(), progress);
      EXPECT_EQ(part.status, "interrupted");
      EXPECT_EQ(part.epochs.back().updates, last);
      EXPECT_FALSE(part.epochs.back().test_loss) << "the evaluation was left";
      options.resume_auto = true;
      const auto rest = train(options);
      EXPECT_EQ(rest.status, "complete");
      EXPECT_TRUE(base::read_file(options.out / "checkpoint-00000010.safetensors") == bytes);
      ASSERT_EQ(rest.epochs.size(), whole.epochs.size());
      for (std::size_t i = 0; i < whole.epochs.size(); ++i) {
        EXPECT_EQ(rest.epochs[i].test_loss, whole.epochs[i].test_loss) << i;
        EXPECT_EQ(rest.epochs[i].test_accuracy, whole.epochs[i].test_accuracy) << i;
      }
    }
}

TEST_F(Resume, ResumedGivesTheBitsOfTheUninterruptedRun) {
  Options options = small();
  const std::string whole = checkpoint_of(options, "whole");
  options.out = directory_ / "parts";
  options.steps = 4;  // inside the first epoch of 6 steps
  (void)train(options);
  options.resume = options.out;
  EXPECT_EQ(checkpoint_of(
                [&] {
                  Options rest = options;
                  rest.steps = 10;
                  return rest;
                }(),
                "parts"),
            whole);
}

TEST_F(Resume, AResumedEpochIsOneWholeEpochOfBothParts) {
  Options options = small("whole");
  options.steps = 12;
  const auto whole = train(options);
  options.out = directory_ / "parts";
  options.steps = 4;  // of the first epoch's 6
  const auto part = train(options);
  EXPECT_EQ(part.epochs.at(0).steps, 4);
  options.resume = options.out;
  options.steps = 12;
  const auto rest = train(options);
  ASSERT_EQ(rest.epochs.size(), 2u);
  EXPECT_EQ(rest.epochs[0].steps, 6);
  EXPECT_EQ(rest.epochs[0].updates, 6);
  EXPECT_GT(rest.epochs[0].seconds, part.epochs[0].seconds);
  EXPECT_NEAR(rest.epochs[0].train_loss, whole.epochs[0].train_loss, 1e-9);
  EXPECT_NEAR(rest.epochs[0].train_accuracy, whole.epochs[0].train_accuracy, 1e-9);
  EXPECT_EQ(rest.epochs[0].test_loss, whole.epochs[0].test_loss);
}

TEST_F(Resume, AResumedEpochStaysAPartWhereTheFirstPartIsNotKnown) {
  Options options = small("parts");
  options.steps = 4;
  (void)train(options);
  std::filesystem::remove(options.out / "record.json");
  options.resume = options.out;
  options.steps = 12;
  const auto rest = train(options);
  ASSERT_EQ(rest.epochs.size(), 2u);
  EXPECT_EQ(rest.epochs[0].updates, 6);
  EXPECT_EQ(rest.epochs[0].steps, 2);
  EXPECT_EQ(rest.epochs[1].steps, 6);
}

TEST_F(Resume, AFailedResumeKeepsTheEpochsBeforeIt) {
  Options options = small("o");
  options.steps = 12;
  (void)train(options);
  options.resume = options.out;
  options.steps = 24;
  options.lr = 1e30;
  EXPECT_THROW((void)train(options), base::Error);
  const auto kept = measure::read_record(options.out / "record.json");
  EXPECT_EQ(kept.status, "failed");
  ASSERT_EQ(kept.epochs.size(), 2u);
  EXPECT_EQ(kept.epochs[1].updates, 12);
}

TEST_F(Resume, ResumedRemovesOnlyItsOwnCheckpoints) {
  Options options = small("o");
  options.steps = 12;
  (void)train(options);
  options.resume = options.out;
  options.steps = 30;
  (void)train(options);
  const auto path = [out = options.out](int update) { return checkpoint_path(out, update); };
  EXPECT_THAT(checkpoints_in(options.out), ElementsAre(path(30), path(24), path(6)));
  // From one that is not the newest there, what is newer would be taken for this run's.
  options.resume = path(24);
  options.steps = 36;
  EXPECT_THAT(refusal(options), HasSubstr("holds checkpoint-00000030.safetensors, newer than"));
  options.out = directory_ / "elsewhere";
  EXPECT_EQ(train(options).epochs.back().updates, 36);
  EXPECT_TRUE(std::filesystem::exists(path(24)));
}

/// Killed between its last checkpoint and its last record.
TEST_F(Resume, WhatWasLostAfterItsLastUpdateIsCompleted) {
  for (const int workers : {1, 2}) {
    Options options = small("end" + std::to_string(workers));
    options.workers = workers;
    const auto whole = train(options);
    const auto path = options.out / "record.json";
    const auto bytes = base::read_file(checkpoint_path(options.out, 10));
    auto lost = whole;
    lost.status = "interrupted";
    lost.reason = kNoReportedError;
    lost.ranks.clear();
    measure::write_record(path, lost);
    options.resume = options.out;
    options.steps = 8;
    EXPECT_THAT(refusal(options), HasSubstr("is already at update 10 of 8"));
    options.steps = 10;
    (void)train(options);
    const auto record = measure::read_record(path);
    EXPECT_EQ(record.status, "complete");
    ASSERT_EQ(record.epochs.size(), whole.epochs.size());
    EXPECT_EQ(record.epochs.back().test_accuracy, whole.epochs.back().test_accuracy);
    EXPECT_EQ(record.restarts.value().at(0).lost_updates, std::nullopt);
    EXPECT_EQ(base::read_file(checkpoint_path(options.out, 10)), bytes);
    EXPECT_THAT(refusal(options), HasSubstr("is already at update 10 of 10"));
  }
}

TEST_F(Resume, KeepsWhatItDoesOtherwiseThanTheRunBefore) {
  Options options = small("o");
  options.batch_norm = engine::BatchNormMode::local;
  (void)train(options);
  options.resume = options.out;
  options.steps = 12;
  options.batch_norm = engine::BatchNormMode::synchronised;
  options.rule.nesterov = true;
  const auto changes_of = [](const measure::Record& record) {
    std::vector<std::string> changes;
    for (const auto& change : record.changes.value()) changes.push_back(measure::sentence(change));
    return changes;
  };
  std::vector<std::string> said;
  Progress progress;
  progress.say = [&](const std::string& line) { said.push_back(line); };
  (void)train(options, {}, progress);
  const std::string first[] = {"from update 10 on, --bn is sync; it was local",
                               "from update 10 on, --nesterov is true; it was false",
                               "from update 10 on, --steps is 12; it was 10"};
  EXPECT_THAT(said, testing::IsSupersetOf(first));
  EXPECT_THAT(changes_of(measure::read_record(options.out / "record.json")),
              testing::ElementsAreArray(first));

  // Another resume keeps them and adds its own; from the older checkpoint, they never were.
  const auto twelve = options.out / "checkpoint-00000012.safetensors",
             ten = options.out / "checkpoint-00000010.safetensors";
  options.steps = 14;
  options.crop_padding = 0;
  options.out = directory_ / "third";
  options.resume = twelve;
  EXPECT_THAT(
      changes_of(train(options)),
      ElementsAre(first[0], first[1], first[2], "from update 12 on, --crop-padding is 0; it was not given",
                  "from update 12 on, --steps is 14; it was 12"));
  options.out = directory_ / "fourth";
  options.resume = ten;
  options.rule.nesterov = false;
  EXPECT_THAT(changes_of(train(options)),
              ElementsAre(first[0], "from update 10 on, --crop-padding is 0; it was not given",
                          "from update 10 on, --steps is 14; it was 10"));
}

TEST_F(Resume, KeepsRecordAndCheckpointWhenItIsStopped) {
  Options options = small("stopped");
  options.workers = 2;
  options.steps = 100000;
  std::stop_source stop;
  Progress progress;
  progress.step = [&](std::int64_t step, std::int64_t, double, double) {
    if (step == 8) stop.request_stop();
  };
  const auto record = train(options, stop.get_token(), progress);
  EXPECT_EQ(record.status, "interrupted");
  const auto kept = measure::read_record(options.out / "record.json");
  EXPECT_EQ(kept.status, "interrupted");
  EXPECT_EQ(kept.epochs.size(), 2u);
  EXPECT_TRUE(std::filesystem::exists(options.out / "checkpoint-00000009.safetensors") ||
              std::filesystem::exists(options.out / "checkpoint-00000008.safetensors"));
}

}  // namespace
}  // namespace paceline::train
