#include "cli/options/options.h"

#include <gtest/gtest.h>

#include "train/given/recorded_settings.h"

namespace paceline::cli {
namespace {

using measure::Setting;

// That each has a reader at all is checked where it is compiled.
TEST(Options, EverySettingThatRecordsHoldIsAnOptionOfTrain) {
  for (std::size_t row = 0; row < Setting::count(); ++row) {
    const auto setting = Setting::at(row);
    if (!setting.is_recorded()) continue;
    EXPECT_NE(find_option(setting.key(), kTrain), nullptr) << setting.key();
  }
}

// The note "--beta1 changes nothing without ..." is made where the record lacks what was given.
TEST(Options, WhatNeedsAChoiceIsRecordedWithThatChoiceOnly) {
  const auto recorded = train::settings(train::Options{});  // sgd at a constant rate
  for (const auto& option : options()) {
    if (option.needs.empty()) continue;
    EXPECT_TRUE(option.setting.is_recorded()) << option.name();
    EXPECT_EQ(measure::find_text(recorded, option.setting), nullptr) << option.name();
  }
}

TEST(Options, RivalsNameEachOther) {
  for (const auto& option : options()) {
    if (!option.rival) continue;
    for (const auto& other : options()) {
      if (other.setting != *option.rival) continue;
      EXPECT_EQ(other.rival, option.setting) << option.name();
    }
  }
}

}  // namespace
}  // namespace paceline::cli
