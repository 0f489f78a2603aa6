#include <gtest/gtest.h>

#include "train/given/options.h"

namespace paceline::train {
namespace {

using Unit = CheckpointInterval::Unit;

TEST(CheckpointInterval, IsReadInStepsSecondsAndEpochs) {
  EXPECT_EQ(checkpoint_interval("500steps"), (CheckpointInterval{Unit::steps, 500}));
  EXPECT_EQ(checkpoint_interval("1step"), (CheckpointInterval{Unit::steps, 1}));
  EXPECT_EQ(checkpoint_interval("60s"), (CheckpointInterval{Unit::seconds, 60}));
  EXPECT_EQ(checkpoint_interval("0.5s"), (CheckpointInterval{Unit::seconds, 0.5}));
  EXPECT_EQ(checkpoint_interval("2epochs"), (CheckpointInterval{Unit::epochs, 2}));
  EXPECT_EQ(checkpoint_interval("3"), (CheckpointInterval{Unit::epochs, 3}));
  for (const char* none :
       {"", "0", "-1", "0s", "1.5", "1.5steps", "s", "steps", "5m", "nans", "1e3s", "60 s", "infs"})
    EXPECT_FALSE(checkpoint_interval(none)) << none;
  for (const char* text : {"500steps", "60s", "0.5s", "3"})
    EXPECT_EQ(text_of(*checkpoint_interval(text)), text);
}

/// By the number of updates or epochs, not since the last one: a resumed run keeps the same places.
TEST(CheckpointInterval, IsDueAtMultiplesOfItsOwnUnitAlone) {
  const CheckpointInterval steps{Unit::steps, 3}, epochs{Unit::epochs, 2}, seconds{Unit::seconds, 1};
  for (std::int64_t number = 1; number <= 12; ++number) {
    EXPECT_EQ(steps.is_due(Unit::steps, number), number % 3 == 0) << number;
    EXPECT_EQ(epochs.is_due(Unit::epochs, number), number % 2 == 0) << number;
    for (const auto& other : {epochs, seconds}) EXPECT_FALSE(other.is_due(Unit::steps, number));
    for (const auto& other : {steps, seconds}) EXPECT_FALSE(other.is_due(Unit::epochs, number));
  }
}

TEST(TrainingTarget, IsAnAccuracyOrALoss) {
  const auto accuracy = target_named("accuracy=0.97"), loss = target_named("loss=1.5");
  ASSERT_TRUE(accuracy && loss);
  EXPECT_TRUE(accuracy->is_reached(9, 0.97));
  EXPECT_FALSE(accuracy->is_reached(0, 0.969));
  EXPECT_TRUE(loss->is_reached(1.5, 0));
  EXPECT_FALSE(loss->is_reached(1.51, 1));
  EXPECT_EQ(text_of(*accuracy), "accuracy=0.97");
  EXPECT_EQ(text_of(*loss), "loss=1.5");
  for (const char* none : {"", "0.97", "accuracy", "accuracy=", "accuracy=0", "accuracy=1.01",
                           "accuracy=97 %", "loss=-1", "loss=inf", "loss=nan", "error=0.1"})
    EXPECT_FALSE(target_named(none)) << none;
}

}  // namespace
}  // namespace paceline::train
