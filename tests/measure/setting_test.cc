#include "measure/setting.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace paceline::measure {
namespace {

std::vector<Setting> all() {
  std::vector<Setting> settings;
  for (std::size_t row = 0; row < Setting::count(); ++row) settings.push_back(Setting::at(row));
  return settings;
}

TEST(Setting, EveryKeyIsUniqueAndFindsItsRow) {
  std::set<std::string_view> keys;
  for (const auto setting : all()) {
    EXPECT_TRUE(keys.insert(setting.key()).second) << setting.key();
    EXPECT_EQ(Setting::find(setting.key()), setting) << setting.key();
  }
}

TEST(Setting, EveryKeyCanBeTyped) {
  for (const auto setting : all())
    EXPECT_TRUE(std::all_of(setting.key().begin(), setting.key().end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    })) << setting.key();
}

TEST(Setting, IsNotFoundByAKeyOfNoRow) {
  for (const char* key : {"", "an-option-of-the-future", "--lr", "LR"}) {
    EXPECT_EQ(Setting::find(key), std::nullopt) << key;
    EXPECT_EQ(role_of(key), std::nullopt) << key;
    EXPECT_FALSE(is_of_execution(key)) << key;
    EXPECT_FALSE(is_of_window(key)) << key;
  }
}

// A role says what kind of choice a setting is; a row whose effects say something else is a mistake in one of
// them.
TEST(Setting, EffectsAgreeWithTheRole) {
  for (const auto setting : all()) {
    const auto time = setting.on_time(), accuracy = setting.on_accuracy();
    switch (setting.role()) {
      case Role::size:
      case Role::window:
      case Role::precision:
        EXPECT_EQ(time, Effect::none) << setting.key();
        EXPECT_EQ(accuracy, Effect::none) << setting.key();
        break;
      case Role::length:
        EXPECT_EQ(time, Effect::none) << setting.key();
        EXPECT_EQ(accuracy, Effect::refuse) << setting.key();
        break;
      case Role::rule:
      case Role::lr_scaling:
        EXPECT_EQ(time, Effect::remark) << setting.key();
        EXPECT_EQ(accuracy, Effect::none) << setting.key();
        break;
      case Role::remedy:
        EXPECT_EQ(time, Effect::refuse) << setting.key();
        EXPECT_EQ(accuracy, Effect::none) << setting.key();
        break;
      case Role::cores:
      case Role::execution:
        EXPECT_EQ(accuracy, Effect::none) << setting.key();
        break;
      case Role::fixed:
      case Role::unrecorded:
        EXPECT_EQ(time, Effect::refuse) << setting.key();
        EXPECT_EQ(accuracy, Effect::refuse) << setting.key();
        break;
    }
  }
}

TEST(Setting, TellsExecutionAndWindowFromTheRest) {
  for (const char* key : {"threads", "pin", "loader-threads", "evaluate-every", "emulate-link"})
    EXPECT_TRUE(is_of_execution(key)) << key;
  for (const char* key : {"workers", "lr", "shard", "precision", "gradients-as", "seed"})
    EXPECT_FALSE(is_of_execution(key)) << key;
  for (const char* key : {"seed", "window-steps", "window-seconds", "warmup-steps"})
    EXPECT_TRUE(is_of_window(key)) << key;
  for (const char* key : {"epochs", "steps", "warmup", "repeats"}) EXPECT_FALSE(is_of_window(key)) << key;
}

TEST(Setting, FindsTheTextOfARun) {
  const SettingTexts texts{{"lr", "0.1"}, {"shard", ""}};
  ASSERT_NE(find_text(texts, "lr"), nullptr);
  EXPECT_EQ(*find_text(texts, "lr"), "0.1");
  ASSERT_NE(find_text(texts, "shard"), nullptr);
  EXPECT_EQ(find_text(texts, "momentum"), nullptr);
}

}  // namespace
}  // namespace paceline::measure
