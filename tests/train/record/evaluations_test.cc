#include "train/record/evaluations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::train {
namespace {

using measure::EpochRecord;
using measure::Record;
using testing::HasSubstr;

EpochRecord evaluated(std::int64_t updates, double loss, double accuracy, double seconds = 1) {
  EpochRecord epoch{.updates = updates, .steps = 10, .seconds = seconds};
  epoch.test_loss = loss;
  epoch.test_accuracy = accuracy;
  return epoch;
}

TEST(EvaluationLog, GoesOnWhereItsCheckpointWas) {
  const std::vector<EpochRecord> epochs{evaluated(10, 1, 0.5, 3), evaluated(20, 1, 0.5, 4)};
  EvaluationLog log({{.update = 10}, {.update = 20}, {.update = 25}}, epochs, 20);
  EXPECT_TRUE(log.has(20));
  EXPECT_FALSE(log.has(25)) << "the record was ahead of the checkpoint";
  log.add({.update = 30}, 2.5);
  ASSERT_EQ(log.all().size(), 3U);
  EXPECT_EQ(log.all().back().seconds, 3 + 4 + 2.5);
  log.go_back(10);
  log.add({.update = 20}, 1);
  ASSERT_EQ(log.all().size(), 2U);
  EXPECT_FALSE(log.all().back().seconds.has_value()) << "some of the time was for nothing";
}

// Killed inside an epoch, whose first steps no record has.
TEST(EvaluationLog, KnowsNoTimeThatIsLost) {
  EvaluationLog log({}, std::vector<EpochRecord>{evaluated(10, 1, 0.5)}, 14);
  log.add({.update = 16}, 1);
  EXPECT_FALSE(log.all().back().seconds.has_value());
}

TEST(TargetWatch, FindsTheFirstThatReachesIt) {
  const std::vector<EpochRecord> before{evaluated(10, 2, 0.4, 5)};
  for (const char* text : {"accuracy=0.8", "loss=0.5"}) {
    Options options;
    options.target = target_named(text);
    EvaluationLog log({}, {}, 0);
    TargetWatch watch(options, 16, log, true), other(options, 16, log, false);
    for (auto* one : {&watch, &other}) {
      one->see(evaluated(10, 2, 0.4, 5), {});
      EXPECT_FALSE(one->is_reached());
      one->see(evaluated(12, 0.5, 0.8, 1), before);
      EXPECT_TRUE(one->is_reached());
      one->see(evaluated(14, 0.6, 0.7, 2), before);
      EXPECT_TRUE(one->is_reached());
    }
    ASSERT_EQ(log.all().size(), 3U) << "rank 0 alone writes";
    EXPECT_EQ(log.all()[1].samples, 12 * 16);
    Record record;
    record.global_batch = 16;
    tell_evaluations(record, options, log);
    EXPECT_EQ(record.target->update, 12);
    EXPECT_EQ(record.target->seconds, 6);
    EXPECT_THAT(sentence_on_target(record), HasSubstr("was reached after 12 updates (192 samples)"));
  }
}

// The run before was lost during the evaluation of its epoch, which this one makes and lists.
TEST(TargetWatch, CountsAnEarlierEpochOnce) {
  const std::vector<EpochRecord> earlier{evaluated(10, 2, 0.4, 5)};
  Options options;
  options.target = target_named("accuracy=0.8");
  EvaluationLog log({}, earlier, 10);
  TargetWatch watch(options, 16, log, true);
  watch.see(evaluated(10, 2, 0.4, 5), {});
  watch.see(evaluated(20, 1, 0.9, 3), earlier);
  EXPECT_EQ(log.all()[0].seconds, 5);
  EXPECT_EQ(log.all()[1].seconds, 8);
  EXPECT_TRUE(watch.is_reached());
  watch.go_back(10);
  EXPECT_FALSE(watch.is_reached());
}

TEST(TargetWatch, TakesTheValidationSetFirst) {
  Options options;
  options.target = target_named("accuracy=0.8");
  EvaluationLog log({}, {}, 0);
  TargetWatch watch(options, 16, log, true);
  auto epoch = evaluated(10, 0.1, 0.9);
  epoch.validation_loss = 1.0;
  epoch.validation_accuracy = 0.7;
  watch.see(epoch, {});
  EXPECT_FALSE(watch.is_reached());
  EXPECT_EQ(log.all().front().accuracy, 0.7);
  Record record;
  tell_evaluations(record, options, log);
  EXPECT_FALSE(record.target->update.has_value());
  EXPECT_THAT(sentence_on_target(record), HasSubstr("was not reached: the best of 1 evaluation was 0.7"));
}

TEST(Evaluations, AreAbsentWhereNobodyAsked) {
  EvaluationLog log({}, {}, 0);
  const Options options;
  TargetWatch watch(options, 16, log, true);
  watch.see(evaluated(10, 1, 0.5), {});
  EXPECT_TRUE(log.all().empty());
  Record record;
  tell_evaluations(record, options, log);
  EXPECT_FALSE(record.evaluations.has_value());
  EXPECT_FALSE(record.target.has_value());
  EXPECT_EQ(sentence_on_target(record), "");
}

}  // namespace
}  // namespace paceline::train
