#include "base/clock.h"

#include <gtest/gtest.h>

namespace paceline::base {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(WatchedDeadline, LeavesOutTimeInWhichNobodyLooked) {
  const TimePoint begin{};
  WatchedDeadline deadline(seconds(10), begin);
  auto now = begin;
  const auto looks_until = [&](TimePoint end) {
    while (now < end) {
      now += milliseconds(500);
      if (deadline.is_over(now)) return true;
    }
    return false;
  };
  EXPECT_FALSE(looks_until(begin + seconds(9)));
  now += seconds(3600);  // stopped
  EXPECT_FALSE(deadline.is_over(now));
  EXPECT_EQ(deadline.until(), begin + seconds(3610));
  EXPECT_TRUE(looks_until(begin + seconds(3610)));
}

TEST(WatchedDeadline, PassesForWhoLooks) {
  const TimePoint begin{};
  WatchedDeadline deadline(seconds(1), begin);
  EXPECT_FALSE(deadline.is_over(begin + milliseconds(999)));
  EXPECT_TRUE(deadline.is_over(begin + milliseconds(1001)));
}

}  // namespace
}  // namespace paceline::base
