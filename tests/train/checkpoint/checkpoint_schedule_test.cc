/// When checkpoints are written, which stay, and what a disk that refuses does to a training.

#include "train/checkpoint/checkpoint_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/checkpoint_header.h"
#include "train/checkpoint/kept_record.h"
#include "train/fixture.h"
#include "train/forwarding_engine.h"

namespace paceline::train {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using Unit = CheckpointInterval::Unit;

class Checkpoints : public TrainingTest {
 protected:
  static std::vector<std::string> names_in(const std::filesystem::path& directory) {
    std::vector<std::string> names;
    for (const auto& path : checkpoints_in(directory)) names.push_back(path.stem().string());
    return names;
  }
};

// 10 steps, 6 an epoch. Others than the first and the last may be put off while one is written.
TEST_F(Checkpoints, OfStepsLieInsideEpochsAndGiveTheSameBits) {
  const std::string whole = checkpoint_of(small(), "whole");
  for (const int workers : {1, 2}) {
    Options options = small("o" + std::to_string(workers));
    options.workers = workers;
    options.checkpoint_every = {Unit::steps, 2};
    options.keep_checkpoints = 100;
    (void)train(options);
    const auto names = names_in(options.out);
    EXPECT_EQ(names.front(), "checkpoint-00000010");
    EXPECT_EQ(names.back(), "checkpoint-00000002");
    if (workers > 1) continue;
    EXPECT_EQ(base::read_file(checkpoint_path(options.out, 10)), whole);
    Options rest = small("rest");
    rest.resume = checkpoint_path(options.out, 2);
    EXPECT_EQ(checkpoint_of(rest, "rest"), whole);
  }
}

TEST_F(Checkpoints, OfSecondsAreWrittenAfterTheStepThatIsOver) {
  Options options = small("o");
  options.checkpoint_every = {Unit::seconds, 1e-9};
  options.keep_checkpoints = 100;
  (void)train(options);
  EXPECT_THAT(names_in(options.out), AllOf(Contains("checkpoint-00000001"), Contains("checkpoint-00000010")));
  options = small("rare");
  options.checkpoint_every = {Unit::seconds, 1e6};
  (void)train(options);
  EXPECT_THAT(names_in(options.out), ElementsAre("checkpoint-00000010")) << "the last is written in any case";
}

TEST_F(Checkpoints, KeepTheLastOnesTheBestAndLinks) {
  Options options = small("o");
  options.validation_split = 0.25;
  options.steps = 0;
  options.epochs = 6;
  options.keep_checkpoints = 3;
  const auto record = train(options);
  const auto last = record.epochs.back().updates, steps = last / 6;
  EXPECT_THAT(checkpoints_in(options.out),
              ElementsAre(checkpoint_path(options.out, last), checkpoint_path(options.out, last - steps),
                          checkpoint_path(options.out, last - 2 * steps)));
  const auto latest = options.out / kLatestLink, best = options.out / kBestLink;
  EXPECT_EQ(std::filesystem::read_symlink(latest), checkpoint_path({}, last));
  EXPECT_EQ(std::filesystem::read_symlink(best), best_checkpoint_path({}, record.chosen.value().updates));
  EXPECT_EQ(read_checkpoint_info(latest).updates, last);
  EXPECT_EQ(number_in(open_checkpoint(best), "best_update"), record.chosen->updates);
  options.resume = latest;  // a link is the file that it leads to
  options.epochs = 7;
  EXPECT_EQ(train(options).status, "complete");
}

/// Does what another engine does, until its evaluations have come to `evaluations` calls.
class EndsInEvaluation : public ForwardingEngine {
 public:
  EndsInEvaluation(std::unique_ptr<engine::Engine> engine, int evaluations)
      : ForwardingEngine(std::move(engine)), left_(evaluations) {}
  engine::LossSums evaluate(std::span<const float> images, std::span<const std::int32_t> labels, int count,
                            int views, std::span<double> logits) override {
    if (left_-- == 0) base::fail(base::ErrorKind::data, "a broken test image");
    return ForwardingEngine::evaluate(images, labels, count, views, logits);
  }

 private:
  int left_;
};

// What a kill in an evaluation, or one broken test image, cost: the epoch that was complete.
TEST_F(Checkpoints, StandBeforeTheEvaluationWhichAResumeMakesUpFor) {
  for (const bool validated : {false, true}) {
    Options options = small();
    options.steps = 0;
    options.epochs = 3;
    if (validated) options.validation_split = 0.25;
    options.out = directory_ / ("whole" + std::to_string(validated));
    const auto whole = train(options);
    const auto last = whole.epochs.back().updates;
    options.out = directory_ / ("lost" + std::to_string(validated));
    auto backend = backend_of(options.device);
    backend.made_up->on_compile = [](const graph::Graph& graph, const engine::CompileOptions& compiled) {
      return std::make_unique<EndsInEvaluation>(engine::compile("cpu", graph, compiled), 4);
    };
    EXPECT_THROW((void)run(options, backend, {}, {}), base::Error);
    const auto left = names_in(options.out);
    ASSERT_FALSE(left.empty());
    const auto record = measure::read_record(options.out / "record.json");
    EXPECT_FALSE(record.epochs.back().test_loss || record.epochs.back().validation_loss);
    options.resume = options.out;
    const auto rest = train(options);
    EXPECT_EQ(base::read_file(checkpoint_path(options.out, last)),
              base::read_file(checkpoint_path(directory_ / ("whole" + std::to_string(validated)), last)));
    ASSERT_EQ(rest.epochs.size(), whole.epochs.size());
    for (std::size_t i = 0; i < rest.epochs.size(); ++i) {
      EXPECT_EQ(rest.epochs[i].train_loss, whole.epochs[i].train_loss) << i;
      EXPECT_EQ(rest.epochs[i].test_loss, whole.epochs[i].test_loss) << i;
      EXPECT_EQ(rest.epochs[i].validation_loss, whole.epochs[i].validation_loss) << i;
      EXPECT_EQ(rest.epochs[i].steps, whole.epochs[i].steps) << i;
    }
    EXPECT_EQ(rest.chosen ? rest.chosen->updates : 0, whole.chosen ? whole.chosen->updates : 0);
  }
}

// A directory in the place of the checkpoint stands in for a disk that refuses one file.
TEST_F(Checkpoints, ThatCannotBeWrittenAreSaidAndCountedAndTheTrainingGoesOn) {
  const std::string whole = checkpoint_of(small(), "whole");
  const Options begun = small("p");
  std::vector<std::string> said;
  Progress progress;
  progress.say = [&](const std::string& text) { said.push_back(text); };
  progress.step = [&](std::int64_t step, std::int64_t, double, double) {
    if (step == 1) std::filesystem::create_directories(checkpoint_path(begun.out, 6) / "in the way");
  };
  const auto record = train(begun, {}, progress);
  EXPECT_EQ(record.status, "complete");
  EXPECT_THAT(said, Contains(AllOf(HasSubstr("the checkpoint of update 6 is not kept"),
                                   HasSubstr("cannot be written"), HasSubstr("the training goes on"))));
  EXPECT_THAT(record.notes, Contains(HasSubstr("1 file of records and checkpoints could not be written")));
  EXPECT_EQ(base::read_file(checkpoint_path(begun.out, 10)), whole);
}

TEST_F(Checkpoints, TheLastOneThatCannotBeWrittenIsAnError) {
  Options options = small("o");
  Progress progress;
  progress.step = [&](std::int64_t step, std::int64_t, double, double) {
    if (step == 1) std::filesystem::create_directories(checkpoint_path(options.out, 10) / "in the way");
  };
  try {
    (void)train(options, {}, progress);
    FAIL() << "accepted";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::data);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("checkpoint-00000010.safetensors: cannot be written"),
                                    HasSubstr("it is one of the last files of this run")));
  }
  EXPECT_EQ(names_in(options.out).back(), "checkpoint-00000006");
}

}  // namespace
}  // namespace paceline::train
