#include "measure/last_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace paceline::measure {
namespace {

using Lane = TimelineSpan::Lane;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kStep = 0.01;

/// Five steps of 10 ms from second 100 on: forward, backward, waiting for `waits` seconds, update; a bucket
/// under way behind backward. `parts`: each of the four is cut into so many.
RankSteps five_steps(int rank, double waits, int parts = 1) {
  RankSteps one{.timeline = {.rank = rank, .clock_error_s = 3e-6}, .steps_s = {}};
  for (int step = 0; step < 5; ++step) {
    const double begin = 100 + kStep * step;
    one.steps_s.push_back(begin);
    const auto add = [&](Phase phase, double from, double to) {
      for (int i = 0; i < parts; ++i)
        one.timeline.spans.push_back({begin + from + (to - from) * i / parts,
                                      begin + from + (to - from) * (i + 1) / parts, Lane::phase,
                                      static_cast<std::int32_t>(phase)});
    };
    add(Phase::forward, 0, 0.003);
    add(Phase::backward, 0.003, 0.009 - waits);
    add(Phase::exposed_wait, 0.009 - waits, 0.009);
    add(Phase::update, 0.009, kStep);
    one.timeline.spans.push_back({begin + 0.009 - waits, begin + 0.009, Lane::collective, 0});
  }
  one.steps_s.push_back(100 + 5 * kStep);
  return one;
}

TEST(LastSteps, AreColumnsOfMicrosecondsFromTheFirstStepShown) {
  const std::vector ranks{five_steps(0, 0.001), five_steps(1, 0)};
  const auto record = last_steps(ranks, 2, true).value();
  EXPECT_EQ(record.steps, 2);
  EXPECT_EQ(record.ranks_left_out, 0);
  ASSERT_EQ(record.ranks.size(), 2U);
  const auto& first = record.ranks[0];
  EXPECT_THAT(first.phase, ElementsAre(2, 3, 5, 6, 2, 3, 5, 6));
  EXPECT_THAT(first.begin_us, ElementsAre(0, 3000, 8000, 9000, 10000, 13000, 18000, 19000));
  EXPECT_THAT(first.length_us, ElementsAre(3000, 5000, 1000, 1000, 3000, 5000, 1000, 1000));
  EXPECT_THAT(first.bucket, ElementsAre(0, 0));
  EXPECT_THAT(first.posted_us, ElementsAre(8000, 18000));
  EXPECT_THAT(record.ranks[1].phase, ElementsAre(2, 3, 6, 2, 3, 6)) << "what has no length is left out";
  EXPECT_FALSE(first.clock_error_us);
  EXPECT_EQ(last_steps(ranks, 2, false)->ranks[1].clock_error_us, 3);
}

TEST(LastSteps, ComeBackAsSpansInSeconds) {
  const auto back =
      timelines(last_steps(std::vector{five_steps(0, 0), five_steps(1, 0.002)}, 3, false).value());
  ASSERT_EQ(back.size(), 2U);
  EXPECT_EQ(back[1].rank, 1);
  EXPECT_DOUBLE_EQ(back[1].clock_error_s, 3e-6);
  double seconds = 0;
  for (const auto& span : back[1].spans)
    if (span.lane == Lane::phase) seconds += span.end_s - span.begin_s;
  EXPECT_NEAR(seconds, 3 * kStep, 1e-6);
  const auto apart = skew(back, 1);
  ASSERT_TRUE(apart.has_value());
  EXPECT_EQ(apart->last_rank, 0) << "rank 1 hands over 2 ms earlier, and waits";
}

TEST(LastSteps, AreThoseThatAllRanksHave) {
  auto ranks = std::vector{five_steps(0, 0), five_steps(1, 0)};
  ranks[1].steps_s.erase(ranks[1].steps_s.begin(), ranks[1].steps_s.begin() + 4);
  const auto record = last_steps(ranks, 3, true).value();
  EXPECT_EQ(record.steps, 1);
  EXPECT_THAT(record.ranks[0].begin_us, ElementsAre(0, 3000, 9000));
  ranks[1].steps_s = {};
  EXPECT_FALSE(last_steps(ranks, 3, true));
  EXPECT_FALSE(last_steps({}, 3, true));
}

TEST(LastSteps, OfManyRanksKeepThoseThatWaitedLeastAndMost) {
  std::vector<RankSteps> ranks;
  for (int rank = 0; rank < 40; ++rank) ranks.push_back(five_steps(rank, 0.0001 * (39 - rank)));
  const auto record = last_steps(ranks, 3, false).value();
  EXPECT_EQ(record.ranks_left_out, 24);
  std::vector<int> kept;
  for (const auto& rank : record.ranks) kept.push_back(rank.rank);
  EXPECT_THAT(kept, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 32, 33, 34, 35, 36, 37, 38, 39));
}

TEST(LastSteps, OfManySpansAreFewerStepsThenFewerRanks) {
  const auto spans = [](const LastStepsRecord& record) {
    std::size_t sum = 0;
    for (const auto& rank : record.ranks) sum += rank.phase.size() + rank.bucket.size();
    return sum;
  };
  std::vector<RankSteps> ranks;
  for (int rank = 0; rank < 8; ++rank) ranks.push_back(five_steps(rank, 0.001, 25));  // 101 spans a step
  const auto fewer_steps = last_steps(ranks, 3, true).value();
  EXPECT_EQ(fewer_steps.steps, 2);
  EXPECT_EQ(fewer_steps.ranks_left_out, 0);
  EXPECT_EQ(spans(fewer_steps), 8U * 2 * 101);
  for (auto& rank : ranks) rank = five_steps(rank.timeline.rank, 0.001, 100);
  const auto fewer_ranks = last_steps(ranks, 3, true).value();
  EXPECT_EQ(fewer_ranks.steps, 1);
  EXPECT_EQ(fewer_ranks.ranks_left_out, 4);
  EXPECT_LE(spans(fewer_ranks), kMostSpansShown);
}

TEST(LastSteps, OfEightRanksTakeAboutFourKilobytes) {
  std::vector<RankSteps> ranks;
  for (int rank = 0; rank < 8; ++rank) {
    ranks.push_back(five_steps(rank, 0.001, 2));  // 9 spans a step
    for (auto& span : ranks.back().timeline.spans) span.begin_s += 1.23e-5, span.end_s += 1.23e-5;
  }
  Record record;
  const auto without = to_json(record).size();
  record.last_steps = last_steps(ranks, 3, true);
  EXPECT_LT(to_json(record).size() - without, 6000U);
}

TEST(LastSteps, AreReadBackAndAbsentInOlderRecords) {
  Record record;
  EXPECT_EQ(to_json(record).find("last_steps"), std::string::npos);
  EXPECT_FALSE(record_from_json(to_json(record), "r").last_steps);
  record.last_steps = last_steps(std::vector{five_steps(0, 0.001)}, 3, false);
  const auto back = record_from_json(to_json(record), "r");
  EXPECT_EQ(back.last_steps.value().ranks.at(0).posted_us, record.last_steps->ranks[0].posted_us);
  EXPECT_EQ(to_json(back), to_json(record));
}

TEST(LastSteps, ThatAreDamagedAreRefusedByName) {
  Record record;
  record.last_steps = last_steps(std::vector{five_steps(0, 0.001)}, 3, true);
  const auto refusal = [](const Record& damaged) -> std::string {
    try {
      (void)record_from_json(to_json(damaged), "r.json");
    } catch (const base::Error& error) {
      return error.what();
    }
    return "accepted";
  };
  ASSERT_EQ(refusal(record), "accepted");
  auto damaged = record;
  damaged.last_steps->ranks[0].length_us.pop_back();
  EXPECT_THAT(refusal(damaged), HasSubstr("r.json: 'last_steps.ranks[0]'"));
  damaged = record;
  damaged.last_steps->ranks[0].phase[0] = 10;
  EXPECT_THAT(refusal(damaged), HasSubstr("phases from 0 to 9"));
  damaged = record;
  damaged.last_steps->ranks[0].under_way_us[0] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(refusal(damaged), HasSubstr("r.json: 'last_steps.ranks[0]'"));
}

}  // namespace
}  // namespace paceline::measure
