#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "engine/update_rule.h"
#include "train/given/names.h"

namespace paceline::train {
namespace {

/// Every listed name is read back to itself and stands there once; what is none is nothing.
template <typename Choice>
void expect_inverse(const std::vector<std::string>& names,
                    const std::function<std::optional<Choice>(std::string_view)>& choice,
                    const std::function<std::string(Choice)>& name) {
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  EXPECT_FALSE(names.empty());
  for (const auto& one : names) {
    const auto read = choice(one);
    ASSERT_TRUE(read) << one;
    EXPECT_EQ(name(*read), one);
    EXPECT_FALSE(choice(one + " ")) << one;
    EXPECT_FALSE(choice(one.substr(1))) << one;
  }
  EXPECT_FALSE(choice(""));
}

TEST(Names, OfChoicesAreReadBack) {
  const auto plain = [](auto value) { return std::string(name(value)); };
  expect_inverse<engine::UpdateKind>(update_kind_names(), update_kind, plain);
  expect_inverse<ScheduleKind>(schedule_kind_names(), schedule_kind, plain);
  expect_inverse<TestSet>(test_set_names(), test_set, plain);
  expect_inverse<OnNan>(on_nan_names(), on_nan, plain);
  expect_inverse<engine::Precision>({"fp32", "bf16"}, precision_of_name, plain);
  expect_inverse<LrScaling>(lr_scaling_names(), lr_scaling, plain);
  expect_inverse<data::CropFill>(crop_fill_names(), crop_fill, plain);
  expect_inverse<data::Flip>(flip_names(), flip, plain);
  expect_inverse<int>(views_names(), views_of_name,
                      [](int views) { return std::string(name_of_views(views)); });
}

TEST(Names, AreOfEveryChoice) {
  EXPECT_EQ(update_kind_names().size(), static_cast<std::size_t>(engine::kUpdateKinds));
  EXPECT_EQ(schedule_kind_names(),
            (std::vector<std::string>{"constant", "step", "cosine", "one-cycle", "plateau"}));
  EXPECT_EQ(test_set_names(), (std::vector<std::string>{"last", "every", "never"}));
  EXPECT_EQ(on_nan_names(), (std::vector<std::string>{"stop", "rollback", "skip"}));
  EXPECT_EQ(views_names(), (std::vector<std::string>{"none", "flip", "flip-shift"}));
}

TEST(Names, OfBatchNormHoldTheSizeOfAGhostBatch) {
  EXPECT_EQ(name(engine::BatchNormMode::local, 0), "local");
  EXPECT_EQ(name(engine::BatchNormMode::synchronised, 0), "sync");
  EXPECT_EQ(name(engine::BatchNormMode::ghost, 16), "ghost:16");
}

}  // namespace

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
