#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixture.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/kept_record.h"

namespace paceline::train {
namespace {

using measure::Record;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

/// Ten steps in epochs of six, evaluated after each multiple of four: 4, 6, 8, 10.
class Target : public TrainingTest {
 protected:
  [[nodiscard]] Options evaluated(const std::string& out = "") const {
    Options options = small(out);
    options.evaluate_steps = 4;
    options.shard = 4;
    options.lr = 0.0005;  // the loss falls with every evaluation
    return options;
  }

  /// "update 4: loss, accuracy" of each evaluation, to the last digit.
  static std::vector<std::string> figures(const Record& record) {
    std::vector<std::string> all;
    for (const auto& one : record.evaluations.value())
      all.push_back(fmt::format("update {}: {}, {}", one.update, one.loss, one.accuracy));
    return all;
  }

  static std::vector<std::int64_t> updates(const Record& record) {
    std::vector<std::int64_t> all;
    for (const auto& one : record.evaluations.value()) all.push_back(one.update);
    return all;
  }

  /// A target that the evaluations of `record` reach after `update` updates, and not before.
  static TrainingTarget reached_at(const Record& record, std::int64_t update) {
    TrainingTarget target{.is_loss = true};
    double before = 1e9;
    for (const auto& one : *record.evaluations) {
      if (one.update == update) target.value = one.loss;
      if (one.update < update) before = std::min(before, one.loss);
    }
    EXPECT_LT(target.value, before) << "the loss falls until then";
    return target;
  }

  static std::string newest(const Options& options) {
    return base::read_file(checkpoints_in(options.out).front());
  }

  /// The training, stopped at `step`, and gone on with as the same command does.
  Record in_two(Options options, std::int64_t step) {
    std::filesystem::remove_all(options.out);
    std::stop_source stop;
    Progress progress;
    progress.step = [&](std::int64_t done, std::int64_t, double, double) {
      if (done == step) stop.request_stop();
    };
    EXPECT_EQ(train(options, stop.get_token(), progress).status, "interrupted") << step;
    options.resume_auto = true;
    return train(options);
  }
};

TEST_F(Target, EvaluatesInsideEpochsAndChangesNoBit) {
  Options options = evaluated("inside");
  const Record record = train(options);
  EXPECT_THAT(updates(record), ElementsAre(4, 6, 8, 10));
  const std::string bytes = newest(options);
  EXPECT_EQ(record.epochs[0].test_loss, (*record.evaluations)[1].loss) << "evaluated once";
  EXPECT_EQ(record.test_set.value().reads, 4 * 40);
  EXPECT_GT((*record.evaluations)[3].seconds.value(), (*record.evaluations)[0].seconds.value());
  EXPECT_NEAR((*record.evaluations)[3].seconds.value(), record.epochs[0].seconds + record.epochs[1].seconds,
              1e-9);
  EXPECT_EQ((*record.evaluations)[0].samples, 64);
  EXPECT_FALSE(record.target.has_value());
  options.out = directory_ / "without";
  options.evaluate_steps = 0;
  const Record without = train(options);
  EXPECT_FALSE(without.evaluations.has_value());
  EXPECT_TRUE(newest(options) == bytes);
  EXPECT_EQ(without.epochs[0].test_loss, record.epochs[0].test_loss);
  EXPECT_EQ(without.epochs[1].train_loss, record.epochs[1].train_loss);
}

TEST_F(Target, EndsAtTheTarget) {
  Options options = evaluated();
  const Record whole = train(options);
  for (const std::int64_t update : {4, 6, 8}) {
    SCOPED_TRACE(update);
    options.out = directory_ / fmt::format("until{}", update);
    options.target = reached_at(whole, update);
    std::vector<std::string> said;
    Progress progress;
    progress.say = [&](const std::string& text) { said.push_back(text); };
    const Record record = train(options, {}, progress);
    EXPECT_EQ(record.status, "complete");
    EXPECT_EQ(record.target.value().update, update);
    EXPECT_EQ(record.target->quantity, "loss");
    EXPECT_EQ(record.target->seconds, record.evaluations->back().seconds);
    EXPECT_EQ(record.evaluations->back().update, update);
    EXPECT_EQ(record.epochs.back().updates, update);
    EXPECT_EQ(record.epochs.back().test_loss, record.evaluations->back().loss) << "and evaluated no more";
    EXPECT_EQ(record.epochs.back().steps, update == 8 ? 2 : update);
    EXPECT_TRUE(std::filesystem::exists(checkpoint_path(options.out, update)));
    EXPECT_THAT(said, Contains(HasSubstr(fmt::format("was reached after {} updates", update))));
    options.resume_auto = true;
    said.clear();
    (void)train(options, {}, progress);
    EXPECT_THAT(said, Contains(HasSubstr("is complete; nothing is left to do")));
  }
}

TEST_F(Target, EndsAtItsLengthWithoutTheTarget) {
  Options options = evaluated();
  options.target = target_named("loss=0.0001");
  const Record record = train(options);
  EXPECT_EQ(record.status, "complete");
  EXPECT_FALSE(record.target.value().update.has_value());
  EXPECT_EQ(record.epochs.back().updates, 10);
  EXPECT_THAT(record.notes, Contains(HasSubstr("loss 0.0001 was not reached: the best of 4 evaluations")));
}

TEST_F(Target, IsTheSameForAnyWorkers) {
  Options options = evaluated();
  const Record one = train(options);
  options.target = reached_at(one, 8);
  options.workers = 2;
  const Record two = train(options);
  EXPECT_EQ(two.target.value().update, 8);
  auto expected = figures(one);
  expected.pop_back();
  EXPECT_EQ(figures(two), expected);
}

// Before an evaluation inside an epoch, in it, after it; at the end of an epoch; and where the target is
// reached.
TEST_F(Target, ResumedGivesTheSameRecordAndBits) {
  Options options = evaluated("whole");
  const Record untargeted = train(options);
  options.target = reached_at(untargeted, 8);
  std::filesystem::remove_all(options.out);
  const Record whole = train(options);
  const std::string bytes = newest(options);
  options.out = directory_ / "parts";
  for (const std::int64_t step : {3, 4, 5, 6, 7, 8}) {
    SCOPED_TRACE(step);
    const Record rest = in_two(options, step);
    EXPECT_EQ(rest.status, "complete");
    EXPECT_EQ(figures(rest), figures(whole));
    EXPECT_EQ(rest.target.value().update, 8);
    EXPECT_TRUE(rest.target->seconds.has_value());
    ASSERT_EQ(rest.epochs.size(), whole.epochs.size());
    for (std::size_t i = 0; i < whole.epochs.size(); ++i) {
      EXPECT_EQ(rest.epochs[i].updates, whole.epochs[i].updates);
      EXPECT_EQ(rest.epochs[i].steps, whole.epochs[i].steps);
      EXPECT_EQ(rest.epochs[i].test_loss, whole.epochs[i].test_loss);
      EXPECT_NEAR(rest.epochs[i].train_loss, whole.epochs[i].train_loss, 1e-12);
    }
    EXPECT_TRUE(newest(options) == bytes);
  }
}

// As a kill leaves it: a record without the part of the epoch, which may be ahead of its checkpoint or behind
// it.
TEST_F(Target, GoesOnAfterAKill) {
  Options options = evaluated("whole");
  const Record whole = train(options);
  const std::string bytes = newest(options);
  options.out = directory_ / "killed";
  for (const std::int64_t step : {7, 8}) {
    SCOPED_TRACE(step);
    std::filesystem::remove_all(options.out);
    options.resume_auto = false;
    std::stop_source stop;
    Progress progress;
    if (step == 7) {  // after the evaluation of the sixth, seen in the next step
      progress.epoch = [&](const measure::EpochRecord&) { stop.request_stop(); };
    } else {
      progress.step = [&](std::int64_t done, std::int64_t, double, double) {
        if (done == step) stop.request_stop();
      };
    }
    EXPECT_EQ(train(options, stop.get_token(), progress).epochs.back().updates, step);
    Record killed = measure::read_record(options.out / "record.json");
    ASSERT_EQ(killed.epochs.size(), 2U);
    EXPECT_EQ(updates(killed), (std::vector<std::int64_t>{4, 6}));
    killed.reason = kNoReportedError;
    killed.epochs.pop_back();
    if (step == 7)
      killed.evaluations->push_back({.update = 8, .samples = 128, .seconds = 1, .loss = 0, .accuracy = 1});
    measure::write_record(options.out / "record.json", killed);
    options.resume_auto = true;
    const Record rest = train(options);
    EXPECT_EQ(figures(rest), figures(whole));
    EXPECT_TRUE((*rest.evaluations)[1].seconds.has_value());
    EXPECT_FALSE((*rest.evaluations)[2].seconds.has_value()) << "the time of steps 7 and on is lost";
    EXPECT_TRUE(newest(options) == bytes);
  }
}

TEST_F(Target, ADeviceEndsAtTheSameUpdate) {
  Options options = evaluated();
  options.device = "cuda-on-host";
  const Record whole = train(options);
  EXPECT_THAT(updates(whole), ElementsAre(4, 6, 8, 10));
  options.target = reached_at(whole, 8);
  for (const int workers : {1, 2}) {
    options.workers = workers;
    const Record record = train(options);
    EXPECT_EQ(record.target.value().update, 8) << workers;
    EXPECT_EQ(record.epochs.back().updates, 8) << workers;
  }
}

TEST_F(Target, LooksAtTheValidationSet) {
  Options options = evaluated();
  options.validation_split = 0.25;
  options.global_batch = 8;
  options.lr = 0.003;
  const Record whole = train(options);
  options.target = reached_at(whole, 8);
  const Record record = train(options);
  EXPECT_EQ(record.target.value().update, 8);
  EXPECT_EQ(record.epochs.back().validation_loss, record.evaluations->back().loss);
  EXPECT_EQ(record.test_set.value().reads, 40) << "once, at the end";
}

TEST_F(Target, RefusesWhatIsNeverEvaluated) {
  Options options = evaluated();
  options.test_set = TestSet::last;
  EXPECT_THAT(refusal(options), HasSubstr("--evaluate-steps needs figures during the training"));
  options.target = target_named("loss=1");
  EXPECT_THAT(refusal(options), HasSubstr("--target needs figures during the training"));
  options.test_set.reset();
  options.evaluate_every = 0;
  EXPECT_THAT(refusal(options), HasSubstr("--evaluate-every 0 and --test-set never"));
  options.evaluate_every = 1;
  options.window_steps = 2;
  EXPECT_THAT(refusal(options), HasSubstr("--target is for whole trainings"));
}

}  // namespace
}  // namespace paceline::train
