#include "train/given/schedule.h"

#include <gtest/gtest.h>

namespace paceline::train {
namespace {

constexpr Length kTenEpochs{.updates = 1000, .updates_per_epoch = 100};

TEST(Schedule, WarmsUpFromARateThatIsTheFirstUpdatesOwn) {
  const ScheduleOptions options{.warmup_epochs = 2, .warmup_start = 0.1};
  EXPECT_DOUBLE_EQ(learning_rate(options, 0.5, 0, kTenEpochs), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(options, 0.5, 100, kTenEpochs), 0.3);
  EXPECT_DOUBLE_EQ(learning_rate(options, 0.5, 200, kTenEpochs), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(options, 0.5, 900, kTenEpochs), 0.5);
}

TEST(LearningRate, IsConstantWhenAskedTo) {
  for (const int update : {0, 1, 500, 999}) EXPECT_EQ(learning_rate({}, 0.3, update, kTenEpochs), 0.3);
}

TEST(LearningRate, WarmsUpLinearlyToThePeakAndNeverStartsAtZero) {
  const ScheduleOptions options{.kind = ScheduleKind::constant, .warmup_epochs = 2};
  EXPECT_DOUBLE_EQ(learning_rate(options, 1, 0, kTenEpochs), 1.0 / 200);
  EXPECT_DOUBLE_EQ(learning_rate(options, 1, 99, kTenEpochs), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(options, 1, 199, kTenEpochs), 1);
  EXPECT_DOUBLE_EQ(learning_rate(options, 1, 200, kTenEpochs), 1);
}

TEST(LearningRate, StepsDownByTheFactorAtWholeEpochs) {
  const ScheduleOptions options{.kind = ScheduleKind::step, .step_epochs = 3, .step_factor = 0.1};
  EXPECT_DOUBLE_EQ(learning_rate(options, 1, 299, kTenEpochs), 1);
  EXPECT_DOUBLE_EQ(learning_rate(options, 1, 300, kTenEpochs), 0.1);
  EXPECT_NEAR(learning_rate(options, 1, 999, kTenEpochs), 1e-3, 1e-15);
}

TEST(LearningRate, FollowsHalfACosineFromPeakToFinalFactorAfterTheWarmUp) {
  const ScheduleOptions options{.kind = ScheduleKind::cosine, .warmup_epochs = 2, .final_factor = 0.1};
  EXPECT_DOUBLE_EQ(learning_rate(options, 2, 200, kTenEpochs), 2);
  EXPECT_NEAR(learning_rate(options, 2, 600, kTenEpochs), 1.1, 1e-12);  // half way: the mean of 2 and 0.2
  EXPECT_NEAR(learning_rate(options, 2, 1000, kTenEpochs), 0.2, 1e-12);
}

TEST(LearningRate, FallsWithAPower) {
  const ScheduleOptions options{
      .kind = ScheduleKind::polynomial, .warmup_epochs = 2, .final_factor = 0.1, .polynomial_power = 2};
  EXPECT_DOUBLE_EQ(learning_rate(options, 2, 100, kTenEpochs), 2 * 101 / 200.0);
  EXPECT_DOUBLE_EQ(learning_rate(options, 2, 200, kTenEpochs), 2);
  EXPECT_NEAR(learning_rate(options, 2, 600, kTenEpochs), 2 * (0.1 + 0.9 * 0.25), 1e-12);
  EXPECT_NEAR(learning_rate(options, 2, 1000, kTenEpochs), 0.2, 1e-12);
}

TEST(LearningRate, OneCycleStartsLowPeaksWhereToldAndEndsAtTheFinalFactor) {
  const ScheduleOptions options{
      .kind = ScheduleKind::one_cycle, .final_factor = 0, .one_cycle_peak = 0.3, .one_cycle_start = 0.04};
  EXPECT_NEAR(learning_rate(options, 1, 0, kTenEpochs), 0.04, 1e-12);
  EXPECT_NEAR(learning_rate(options, 1, 300, kTenEpochs), 1, 1e-12);
  EXPECT_NEAR(learning_rate(options, 1, 1000, kTenEpochs), 0, 1e-12);
  for (int update = 1; update <= 300; ++update)
    EXPECT_GT(learning_rate(options, 1, update, kTenEpochs),
              learning_rate(options, 1, update - 1, kTenEpochs));
}

TEST(ScaledRate, StatesRuleFactorAndBaseAndWhatLinearWouldBeWhenItIsNotUsed) {
  Options options;
  options.lr = 0.1;
  options.scale_lr = LrScaling::linear;
  const auto linear = scaled_rate(options, 512);
  EXPECT_DOUBLE_EQ(linear.peak, 0.4);
  EXPECT_EQ(linear.sentence, "learning rate 0.1 x 4 = 0.4 (linear: global batch 512 / 128)");
  options.scale_lr = LrScaling::sqrt;
  EXPECT_DOUBLE_EQ(scaled_rate(options, 512).peak, 0.2);
  options.scale_lr = LrScaling::none;
  const auto none = scaled_rate(options, 512);
  EXPECT_DOUBLE_EQ(none.peak, 0.1);
  EXPECT_NE(none.sentence.find("linear scaling from 128 would be 0.4"), std::string::npos) << none.sentence;
}

TEST(LearningRate, IsScaledInWordsOnlyFromABatchThatItBelongsTo) {
  Options options;
  EXPECT_EQ(scaled_rate(options, 128).sentence, "learning rate 0.1") << "nothing would differ";
  options.lr = 0.002;  // chosen for this batch, as recipes/mnist.toml does
  EXPECT_EQ(scaled_rate(options, 64).sentence, "learning rate 0.002");
  options.rule.kind = engine::UpdateKind::adamw;
  options.lr = 0.1;
  EXPECT_EQ(scaled_rate(options, 64).sentence, "learning rate 0.1") << "SGD's usual rate, and not this one's";
  options.lr_batch = 128;
  EXPECT_NE(scaled_rate(options, 64).sentence.find("linear scaling from 128 would be 0.05"),
            std::string::npos);
}

}  // namespace
}  // namespace paceline::train
