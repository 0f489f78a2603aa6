#include "train/given/recorded_settings.h"

#include <gtest/gtest.h>

namespace paceline::train {
namespace {

// Six digits made cells of two learning rates the same cell.
TEST(RecordedSettings, TellNumbersApartThatDifferLate) {
  Options a, b;
  a.lr = 0.1;
  b.lr = 0.1000001;
  EXPECT_EQ(settings(a).at("lr"), "0.1");
  EXPECT_EQ(settings(b).at("lr"), "0.1000001");
}

// Which numbers are read depends on the optimizer and the schedule: a number that nothing reads tells no runs
// apart.
TEST(RecordedSettings, LackWhatNothingReads) {
  Options options;
  EXPECT_FALSE(settings(options).contains("beta1"));
  EXPECT_FALSE(settings(options).contains("step-epochs"));
  EXPECT_FALSE(settings(options).contains("lookahead-keep"));
  options.rule.kind = engine::UpdateKind::adamw;
  options.schedule.kind = ScheduleKind::step;
  options.lookahead.steps = 5;
  EXPECT_EQ(settings(options).at("beta1"), "0.9");
  EXPECT_EQ(settings(options).at("step-epochs"), "30");
  EXPECT_EQ(settings(options).at("lookahead-keep"), "0.5");
}

// Records of before these options are those of their defaults.
TEST(RecordedSettings, HoldHowWorkersAreJoinedOnlyWhereItIsNotTheUsualWay) {
  Options options;
  EXPECT_FALSE(settings(options).contains("placement"));
  EXPECT_FALSE(settings(options).contains("parallel"));
  options.placement = Placement::spread;
  options.data_parallel = true;
  EXPECT_EQ(settings(options).at("placement"), "spread");
  EXPECT_EQ(settings(options).at("parallel"), "data-parallel");
}

TEST(RecordedSettings, DifferWhereOneSideLacksOne) {
  const auto changes =
      differences({{"lr", "0.1"}, {"seed", "0"}}, {{"lr", "0.2"}, {"seed", "0"}, {"flip", "none"}});
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0].setting, "flip");
  EXPECT_EQ(changes[0].then, std::nullopt);
  EXPECT_EQ(changes[0].now, "none");
  EXPECT_EQ(changes[1].setting, "lr");
  EXPECT_EQ(changes[1].then, "0.1");
}

}  // namespace
}  // namespace paceline::train
