#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "measure/spans.h"

namespace paceline::measure {
namespace {

using ::testing::DoubleNear;
using ::testing::Pointwise;

struct Case {
  const char* story;
  std::vector<CollectiveTimes> collectives;
  std::vector<double> transfer;
  std::vector<Interval> blocked;
  CommunicationTime expected;
};

TEST(Spans, EverySecondOfCommunicationIsBookedAsWorkedOutByHand) {
  const std::vector<Case> cases{
      {"nothing", {}, {}, {}, {}},
      {"hidden behind the backward pass", {{1, 3}}, {2}, {}, {2, 2, 0, 0, 0}},
      {"last bucket, all of it waited for", {{1, 3}}, {2}, {{1, 3}}, {2, 2, 0, 2, 0}},
      {"late peer first, then bytes", {{0, 5}}, {1}, {{0, 5}}, {5, 1, 4, 1, 4}},
      {"blocked only while bytes move", {{0, 5}}, {1}, {{4.5, 5}}, {5, 1, 4, 0.5, 0}},
      {"blocked from the middle of the waiting", {{0, 5}}, {1}, {{3, 5}}, {5, 1, 4, 1, 1}},
      {"the second queues behind the first and is not counted twice",
       {{0, 4}, {1, 6}},
       {4, 2},
       {{5, 6}},
       {6, 6, 0, 1, 0}},
      {"a pause between two", {{0, 1}, {3, 4}}, {1, 0.5}, {{0.5, 3.25}}, {2, 1.5, 0.5, 0.5, 0.25}},
      {"blocked twice within one", {{0, 10}}, {10}, {{1, 2}, {5, 7}}, {10, 10, 0, 3, 0}},
      {"a transfer longer than the turn is cut to it", {{0, 1}}, {3}, {}, {1, 1, 0, 0, 0}},
      {"blocked elsewhere", {{2, 3}}, {1}, {{0, 2}, {3, 9}}, {1, 1, 0, 0, 0}},
  };
  for (const Case& c : cases) {
    const auto total = sum(communication_times(c.collectives, c.transfer, c.blocked));
    EXPECT_DOUBLE_EQ(total.total, c.expected.total) << c.story;
    EXPECT_DOUBLE_EQ(total.transfer, c.expected.transfer) << c.story;
    EXPECT_DOUBLE_EQ(total.late_peer, c.expected.late_peer) << c.story;
    EXPECT_DOUBLE_EQ(total.exposed_transfer, c.expected.exposed_transfer) << c.story;
    EXPECT_DOUBLE_EQ(total.exposed_wait, c.expected.exposed_wait) << c.story;
    EXPECT_NEAR(total.transfer + total.late_peer, total.total, 1e-12) << c.story;
    double waited = 0, end = -1;
    for (const auto& wait : exposed_waits(c.collectives, c.transfer, c.blocked)) {
      EXPECT_GE(wait.begin, end) << c.story;
      waited += wait.length();
      end = wait.end;
    }
    EXPECT_DOUBLE_EQ(waited, c.expected.exposed_wait) << c.story;
    EXPECT_LE(total.exposed_transfer + total.exposed_wait, total.total + 1e-12) << c.story;
  }
}

TEST(Spans, TurnsCoverTheUnionOfAllCollectivesOnce) {
  const std::vector<CollectiveTimes> collectives{{0, 2}, {0.5, 3}, {1, 3}, {5, 6}};
  const auto all = turns(collectives);
  const std::vector<double> begin{0, 2, 3, 5}, end{2, 3, 3, 6};
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].begin, begin[i]);
    EXPECT_EQ(all[i].end, end[i]);
  }
}

TEST(Spans, TransferIsTheShortestTurnOverRanks) {
  const std::vector<std::vector<double>> seconds{{3, 1, 2}, {2, 4, 2}, {9, 1.5, 1}};
  EXPECT_THAT(transfers(seconds), Pointwise(DoubleNear(0), std::vector<double>{2, 1, 1}));
  EXPECT_TRUE(transfers({}).empty());
}

TEST(Spans, TheRankThatCameLastWaitedForNobody) {
  // Rank 1 posts 3 s after rank 0; both are done at 5.
  const std::vector<CollectiveTimes> early{{0, 5}}, late{{3, 5}};
  const std::vector<std::vector<double>> seconds{{turns(early)[0].length()}, {turns(late)[0].length()}};
  const auto transfer = transfers(seconds);
  EXPECT_EQ(sum(communication_times(late, transfer, {})).late_peer, 0);
  EXPECT_EQ(sum(communication_times(early, transfer, {})).late_peer, 3);
}

}  // namespace

namespace {

TEST(StepSample, OfEachGroupExactlyOneStepIsTimed) {
  for (int halvings = 0; halvings <= 6; ++halvings) {
    const std::int64_t group = std::int64_t{1} << halvings;
    for (std::int64_t begin = 0; begin < 64 * group; begin += group) {
      int timed = 0;
      for (std::int64_t step = begin; step < begin + group; ++step) timed += is_timed(step, halvings) ? 1 : 0;
      EXPECT_EQ(timed, 1) << "of the " << group << " steps from " << begin;
    }
  }
}

/// With a fixed place in each group, steps that recur every 8 steps would be all of the list or none of it.
TEST(StepSample, WhatRecursAtAFixedDistanceIsTimedAsOftenAsItHappens) {
  constexpr std::int64_t kSteps = 1 << 16;
  constexpr int kHalvings = 3, kPeriod = 8;
  for (int place = 0; place < kPeriod; ++place) {
    int timed = 0, all = 0;
    for (std::int64_t step = 0; step < kSteps; ++step) {
      if (!is_timed(step, kHalvings)) continue;
      ++all;
      timed += step % kPeriod == place ? 1 : 0;
    }
    EXPECT_EQ(all, kSteps / kPeriod);
    EXPECT_NEAR(timed, all / kPeriod, 5 * 30) << "five standard deviations, place " << place;
  }
}

TEST(StepSample, HalvingLeavesWhatIsTimed) {
  for (const std::size_t steps : {0u, 1u, 2u, 3u, 7u, 64u, 1001u}) {
    std::vector<double> times(steps);
    std::iota(times.begin(), times.end(), 0.0);
    for (int halvings = 0; halvings < 5; ++halvings) {
      halve(times, halvings);
      std::vector<double> wanted;
      for (std::size_t step = 0; step < steps; ++step)
        if (is_timed(static_cast<std::int64_t>(step), halvings + 1))
          wanted.push_back(static_cast<double>(step));
      EXPECT_EQ(times, wanted) << steps << " steps halved " << halvings + 1 << " times";
      EXPECT_EQ(times.capacity(), times.size());
    }
  }
}

}  // namespace
}  // namespace paceline::measure
