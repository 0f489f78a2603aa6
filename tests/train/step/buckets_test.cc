#include "train/step/buckets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace paceline::train {
namespace {

using testing::ElementsAre;

graph::Layout layout_of(const std::vector<std::int64_t>& elements) {
  graph::Layout layout;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    layout.slots.push_back({static_cast<int>(i), layout.elements, elements[i]});
    layout.slot_of_parameter.push_back(static_cast<int>(i));
    layout.elements += (elements[i] + 15) / 16 * 16;
  }
  return layout;
}

TEST(Buckets, CloseAtTheFirstParameterThatFillsThemAndNeverSplitOne) {
  EXPECT_THAT(cut_buckets(layout_of({160, 160, 160, 160}), 4 * 200).ends, ElementsAre(320, 640));
  EXPECT_THAT(cut_buckets(layout_of({1600, 16, 160}), 4 * 100).ends, ElementsAre(1600, 1776));
}

TEST(Buckets, LeaveASmallRestToItselfSoThatTheOneBeforeItNeedNotWait) {
  EXPECT_THAT(cut_buckets(layout_of({1600, 16}), 4 * 1600).ends, ElementsAre(1600, 1616));
}

TEST(Buckets, CoverTheWholeLayoutForAnySize) {
  const auto layout = layout_of({10, 480, 33, 7, 96, 5000, 1});
  for (const std::int64_t bytes : {1, 64, 1000, 100000}) {
    const auto buckets = cut_buckets(layout, bytes);
    ASSERT_FALSE(buckets.ends.empty());
    EXPECT_EQ(buckets.ends.back(), layout.elements);
    EXPECT_TRUE(std::is_sorted(buckets.ends.begin(), buckets.ends.end()));
  }
}

TEST(Buckets, OfNothingAreNone) { EXPECT_TRUE(cut_buckets(layout_of({}), 100).ends.empty()); }

}  // namespace
}  // namespace paceline::train
