#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixture.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/safetensors.h"
#include "train/step/loss_guard.h"

namespace paceline::train {
namespace {

using measure::EpochRecord;
using measure::Record;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr std::int64_t kTestImages = 40;  ///< of small()

EpochRecord epoch(std::int64_t number, double accuracy, double loss) {
  EpochRecord result{.epoch = number, .updates = 10 * number};
  result.validation_accuracy = accuracy;
  result.validation_loss = loss;
  return result;
}

TEST(ValidationWatch, TheBestHasMoreCorrectOrAsManyWithALowerLossAndOfEqualsTheFirstStays) {
  ValidationWatch watch({}, 0);
  EXPECT_TRUE(watch.see(epoch(1, 0.5, 1.0)));
  EXPECT_FALSE(watch.see(epoch(2, 0.5, 1.0)));
  EXPECT_FALSE(watch.see(epoch(3, 0.4, 0.1)));
  EXPECT_TRUE(watch.see(epoch(4, 0.5, 0.9)));
  EXPECT_TRUE(watch.see(epoch(5, 0.6, 2.0)));
  EXPECT_FALSE(watch.see({.epoch = 6}));  // not validated
  EXPECT_EQ(watch.state().best_epoch, 5);
  EXPECT_EQ(watch.state().best_update, 50);
  EXPECT_EQ(watch.state().last_epoch, 5);
}

TEST(ValidationWatch, APlateauLowersTheRateAfterItsPatienceAndThenWaitsAsLongAgain) {
  const ScheduleOptions schedule{.kind = ScheduleKind::plateau, .plateau_patience = 2, .plateau_factor = 0.5};
  ValidationWatch watch(schedule, 0);
  std::vector<double> factors;
  for (const double accuracy : {0.5, 0.4, 0.4, 0.4, 0.4, 0.6, 0.5, 0.5}) {
    (void)watch.see(epoch(static_cast<std::int64_t>(factors.size()) + 1, accuracy, 1));
    factors.push_back(watch.rate_factor());
  }
  EXPECT_THAT(factors, testing::ElementsAre(1, 1, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125));
  ValidationWatch constant({}, 0);
  for (int number = 1; number < 9; ++number) (void)constant.see(epoch(number, 0.5, 1));
  EXPECT_EQ(constant.rate_factor(), 1);
}

TEST(ValidationWatch, StopsAfterItsPatience) {
  ValidationWatch watch({}, 2), never({}, 0);
  for (const auto& [number, accuracy] : {std::pair{1, 0.5}, {2, 0.4}, {3, 0.6}, {4, 0.5}}) {
    (void)watch.see(epoch(number, accuracy, 1));
    EXPECT_FALSE(watch.is_over()) << number;
  }
  for (int number = 5; number < 9; ++number) {
    (void)watch.see(epoch(number, 0.5, 1));
    (void)never.see(epoch(number, 0.5, 1));
    EXPECT_TRUE(watch.is_over());
    EXPECT_FALSE(never.is_over());
  }
}

class Validation : public TrainingTest {
 protected:
  /// Four epochs of 4 steps; 26 images are held back.
  [[nodiscard]] Options validated(const std::string& out = "") const {
    Options options = small(out);
    options.validation_split = 0.25;
    options.steps = 0;
    options.epochs = 4;
    options.shard = 8;
    return options;
  }

  /// The training, stopped at `step` and gone on with.
  Record resumed_at(Options options, std::int64_t step) {
    std::stop_source stop;
    Progress progress;
    progress.step = [&](std::int64_t done, std::int64_t, double, double) {
      if (done == step) stop.request_stop();
    };
    EXPECT_EQ(train(options, stop.get_token(), progress).status, "interrupted");
    options.resume = options.out;
    return train(options);
  }

  static std::string newest(const Options& options) {
    return base::read_file(checkpoints_in(options.out).front());
  }
};

TEST_F(Validation, ReadsTheTestSetOnceWithTheWeightsOfTheBestEpoch) {
  Options options = validated();
  options.lr = 1;
  options.epochs = 20;
  options.early_stopping = 2;  // so that the best epoch is not the last
  options.test_set = TestSet::every;
  const Record every = train(options);
  EXPECT_GE(every.test_set.value().reads, std::ssize(every.epochs) * kTestImages);
  const auto best = static_cast<std::size_t>(every.chosen.value().epoch);
  ASSERT_EQ(best + 2, every.epochs.size());
  options.test_set.reset();  // the default
  for (const int workers : {1, 2}) {
    options.workers = workers;
    const Record last = train(options);
    const auto& test = last.test_set.value();
    EXPECT_EQ(test.policy, "last");
    EXPECT_EQ(test.reads, kTestImages) << workers;
    EXPECT_EQ(test.epoch, every.chosen->epoch);
    EXPECT_EQ(test.loss, every.epochs.at(best - 1).test_loss);
    EXPECT_EQ(test.accuracy, every.epochs.at(best - 1).test_accuracy);
    for (const auto& epoch : last.epochs) {
      EXPECT_EQ(epoch.test_loss.has_value(), epoch.epoch == every.chosen->epoch);
      EXPECT_EQ(epoch.validation_loss,
                every.epochs.at(static_cast<std::size_t>(epoch.epoch - 1)).validation_loss);
      EXPECT_EQ(epoch.train_loss, every.epochs.at(static_cast<std::size_t>(epoch.epoch - 1)).train_loss);
    }
    EXPECT_EQ(measure::final_test_accuracy(last), test.accuracy);
    EXPECT_THAT(last.notes, Contains(HasSubstr("and the test set was read once")));
  }
}

TEST_F(Validation, WithoutAValidationPartTheTestSetIsEvaluatedEveryTimeAsBefore) {
  Options options = small();
  options.steps = 0;
  options.epochs = 3;
  for (const int every : {1, 2}) {
    options.evaluate_every = every;
    const Record record = train(options);
    EXPECT_EQ(record.test_set.value().policy, "every");
    EXPECT_EQ(record.test_set->reads, (every == 1 ? 3 : 2) * kTestImages);
    EXPECT_FALSE(record.test_set->epoch.has_value());
    EXPECT_FALSE(record.chosen.has_value());
    EXPECT_TRUE(record.epochs.back().test_loss.has_value());
  }
  options.test_set = TestSet::last;
  const Record last = train(options);
  EXPECT_EQ(last.test_set.value().reads, kTestImages);
  EXPECT_EQ(last.test_set->epoch, 3);
  EXPECT_FALSE(last.epochs.front().test_loss.has_value());
}

TEST_F(Validation, NeverReadsTheTestSetWhereItIsToldSo) {
  Options options = validated();
  options.test_set = TestSet::never;
  const Record record = train(options);
  EXPECT_EQ(record.test_set.value().reads, 0);
  EXPECT_FALSE(record.test_set->accuracy.has_value());
  EXPECT_TRUE(record.epochs.back().validation_accuracy.has_value());
  EXPECT_THAT(record.notes, Contains(HasSubstr("the test set was not read")));
}

TEST_F(Validation, IsNotLeftOutWithoutAWord) {
  Options options = validated();
  options.evaluate_every = 0;
  const Record record = train(options);
  EXPECT_FALSE(record.epochs.back().validation_accuracy.has_value());
  EXPECT_EQ(record.test_set.value().reads, 0);
  EXPECT_THAT(record.notes, Contains(HasSubstr("are held back and never evaluated")));
  options.early_stopping = 2;
  EXPECT_THAT(refusal(options), HasSubstr("--evaluate-every 0 never evaluates"));
  options.early_stopping = 0;
  options.test_set = TestSet::every;
  EXPECT_THAT(refusal(options), HasSubstr("contradict each other"));
  options = small();
  options.schedule.kind = ScheduleKind::plateau;
  EXPECT_THAT(refusal(options), HasSubstr("--schedule plateau needs a validation part, but"));
}

TEST_F(Validation, EarlyStoppingIsTheSameForAllWorkersAndForAResumedRun) {
  Options options = validated("whole");
  options.lr = 1;
  options.epochs = 20;
  options.early_stopping = 2;
  std::vector<std::string> said;
  Progress progress;
  progress.say = [&](const std::string& text) { said.push_back(text); };
  const Record whole = train(options, {}, progress);
  EXPECT_THAT(said, Contains(HasSubstr("stopped early: no better validation figure since epoch")));
  const auto& chosen = whole.chosen.value();
  EXPECT_TRUE(chosen.stopped_early);
  EXPECT_EQ(whole.status, "complete");
  EXPECT_EQ(whole.epochs.back().epoch, chosen.epoch + 2);
  EXPECT_EQ(whole.test_set.value().reads, kTestImages);
  EXPECT_THAT(whole.notes, Contains(HasSubstr("stopped early")));
  const std::string bytes = newest(options);
  for (const int workers : {1, 2}) {
    options.workers = workers;
    options.out = directory_ / ("parts" + std::to_string(workers));
    // In the middle of the epoch after the best one: its weights must come back from their file.
    const Record parts = resumed_at(options, chosen.updates + 2);
    EXPECT_EQ(newest(options), bytes);
    EXPECT_EQ(parts.chosen.value().epoch, chosen.epoch);
    EXPECT_EQ(parts.test_set.value().loss, whole.test_set->loss);
    EXPECT_EQ(parts.test_set->reads, kTestImages);
    EXPECT_EQ(parts.epochs.size(), whole.epochs.size());
  }
}

TEST_F(Validation, APlateauLowersTheRateAlikeInAResumedRun) {
  Options options = validated("whole");
  options.lr = 1;
  options.epochs = 7;
  options.schedule.kind = ScheduleKind::plateau;
  options.schedule.plateau_patience = 1;
  options.schedule.plateau_factor = 0.5;
  const Record whole = train(options);
  const auto reductions = whole.chosen.value().reductions;
  EXPECT_GT(reductions, 1);
  for (std::size_t i = 1; i < whole.epochs.size(); ++i) EXPECT_LE(whole.epochs[i].lr, whole.epochs[i - 1].lr);
  const std::string bytes = newest(options);
  options.workers = 2;
  options.out = directory_ / "parts";
  const Record parts = resumed_at(options, 4 * 5 + 1);
  EXPECT_EQ(newest(options), bytes);
  EXPECT_EQ(parts.chosen.value().reductions, reductions);
}

TEST_F(Validation, ARunThatPausesIsGoneOnWithAsIfItHadNot) {
  Options options = validated("whole");
  options.schedule.kind = ScheduleKind::cosine;
  const Record whole = train(options);
  const std::string bytes = newest(options);
  options.out = directory_ / "parts";
  options.pause_after_epochs = 2;
  const Record part = train(options);
  EXPECT_EQ(part.status, "complete");
  EXPECT_EQ(part.epochs.size(), 2u);
  EXPECT_EQ(part.test_set.value().reads, 0);  // it is not over
  options.resume = options.out;
  EXPECT_THAT(refusal(options), HasSubstr("already at update 8 of 8"));
  options.pause_after_epochs = 0;
  const Record rest = train(options);
  EXPECT_EQ(newest(options), bytes);
  EXPECT_EQ(rest.test_set.value().loss, whole.test_set.value().loss);
  EXPECT_EQ(rest.epochs.size(), 4u);
}

// What the disk holds when the process is killed right after it has read the test set: the next one reads it
// again, and the record said that it had been read once.
TEST_F(Validation, AKillInTheLastPassOverTheTestSetHidesNoReading) {
  const Options options = validated("whole");
  auto killed = options;
  killed.out = killed.resume = directory_ / "killed";
  auto backend = backend_of(options.device);
  backend.made_up->on_at = [&](const char* phase) {
    if (std::string(phase) == "the writing of the record")
      std::filesystem::copy(options.out, killed.out, std::filesystem::copy_options::recursive);
  };
  const Record whole = run(options, backend, {}, {});
  EXPECT_EQ(whole.test_set.value().reads, kTestImages);
  const Record left = measure::read_record(killed.out / "record.json");
  EXPECT_EQ(left.status, "interrupted");
  EXPECT_EQ(left.test_set.value().reads, kTestImages);
  const Record again = train(killed);
  EXPECT_EQ(again.test_set.value().reads, 2 * kTestImages);
  EXPECT_EQ(again.test_set->loss, whole.test_set->loss);
  EXPECT_THAT(again.notes, Contains(HasSubstr("and the test set was read 2 times")));
}

TEST_F(Validation, AResumeOfAnOlderVersionsCheckpointSaysWhichEpochsItCannotChoose) {
  Options options = validated("older");
  std::stop_source stop;
  Progress progress;
  progress.step = [&](std::int64_t done, std::int64_t, double, double) {
    if (done == 4 * 2 + 1) stop.request_stop();
  };
  EXPECT_EQ(train(options, stop.get_token(), progress).status, "interrupted");
  const auto newest = checkpoints_in(options.out).front();
  {  // as it was written before the best epoch stood in it
    const SafetensorsFile file(newest);
    auto metadata = file.metadata();
    for (const char* key : {"best_update", "best_epoch", "best_accuracy", "best_loss", "validated_epoch",
                            "reduced_epoch", "reductions"})
      EXPECT_EQ(metadata.erase(key), 1u) << key;
    write_safetensors(newest, file.tensors(), metadata);
  }
  options.resume = options.out;
  std::vector<std::string> said;
  progress = {};
  progress.say = [&](const std::string& text) { said.push_back(text); };
  const Record rest = train(options, {}, progress);
  const auto sentence =
      HasSubstr("a version that kept no best epoch: the 2 validated epochs before it cannot be chosen");
  EXPECT_THAT(rest.notes, Contains(sentence));
  EXPECT_THAT(said, Contains(sentence));
  EXPECT_GE(rest.chosen.value().epoch, 3);
  options.out = directory_ / "newer";
  options.resume.clear();
  for (const auto& note : resumed_at(options, 4 * 2 + 1).notes) EXPECT_THAT(note, Not(sentence));
}

// The test set is read with the weights of the best epoch, which are in the engine then.
TEST_F(Validation, TheLastCheckpointKeepsTheLastWeights) {
  Options options = validated("once");
  options.lr = 1;
  Record record;
  do {
    ++options.seed;
    std::filesystem::remove_all(options.out);
    record = train(options);
  } while (record.chosen.value().updates == record.epochs.back().updates && options.seed < 20);
  ASSERT_LT(record.chosen->updates, record.epochs.back().updates);
  const SafetensorsFile once(checkpoints_in(options.out).front());
  options.out = directory_ / "every";
  options.test_set = TestSet::every;  // nothing is put back at the end
  (void)train(options);
  const SafetensorsFile every(checkpoints_in(options.out).front());
  ASSERT_EQ(once.tensors().size(), every.tensors().size());
  for (const auto& tensor : once.tensors())
    EXPECT_TRUE(std::ranges::equal(tensor.bytes, every.find(tensor.name)->bytes)) << tensor.name;
}

TEST_F(Validation, AResumeNeedsTheFileOfTheBestEpochAndTakesItAlong) {
  Options options = validated("first");
  options.lr = 1;
  options.epochs = 3;
  const auto best = train(options).chosen.value().updates;
  const auto file = best_checkpoint_path(options.out, best);
  EXPECT_TRUE(std::filesystem::exists(file));
  options.resume = options.out;
  options.out = directory_ / "second";
  options.epochs = 4;
  const auto then = train(options);
  EXPECT_EQ(then.test_set.value().reads, 2 * kTestImages);  // it was read by the run before, too
  EXPECT_TRUE(std::filesystem::exists(best_checkpoint_path(options.out, then.chosen.value().updates)));
  std::filesystem::remove(file);
  options.out = directory_ / "third";
  EXPECT_THAT(refusal(options), HasSubstr("its best epoch on validation is"));
}

}  // namespace
}  // namespace paceline::train
