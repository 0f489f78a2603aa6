#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>

#include "base/error.h"
#include "measure/ledger.h"
#include "measure/timeline.h"

namespace paceline::measure {
namespace {

using Lane = TimelineSpan::Lane;
using ::testing::HasSubstr;

/// Two ranks, two buckets, three steps of 10 ms; rank 1 hands over `late` seconds after rank 0.
std::vector<RankTimeline> two_ranks(double late) {
  std::vector<RankTimeline> ranks{{.rank = 0, .host = "a"}, {.rank = 1, .host = "b", .clock_error_s = 2e-6}};
  for (auto& rank : ranks)
    for (int step = 0; step < 3; ++step) {
      const double begin = 0.01 * step, shift = rank.rank * late;
      rank.spans.push_back({begin, begin + 0.004 + shift, Lane::phase, static_cast<int>(Phase::backward)});
      for (int bucket = 0; bucket < 2; ++bucket)
        rank.spans.push_back({begin + 0.002 * (bucket + 1) + shift, begin + 0.007, Lane::collective, bucket});
    }
  return ranks;
}

TEST(ChromeTrace, IsJsonWithARankAProcessAndMicroseconds) {
  const std::vector<std::int64_t> bytes{4000, 8000};
  const auto file = nlohmann::json::parse(chrome_trace(two_ranks(0.001), bytes));
  int backward = 0, second = 0;
  std::vector<std::string> processes;
  for (const auto& event : file.at("traceEvents")) {
    if (event.at("name") == "process_name") processes.push_back(event.at("args").at("name"));
    if (event.at("name") == "backward") {
      ++backward;
      if (event.at("pid") == 1) {
        EXPECT_NEAR(event.at("dur").get<double>(), 5000, 1e-6);
      }
    }
    if (event.at("name") != "bucket 1") continue;
    ++second;
    EXPECT_EQ(event.at("args").at("bytes"), 8000);
    EXPECT_EQ(event.at("tid"), 1);
  }
  EXPECT_EQ(backward, 6);
  EXPECT_EQ(second, 6);
  EXPECT_THAT(processes, ::testing::ElementsAre("rank 0 on a", "rank 1 on b"));
  EXPECT_EQ(file.at("otherData").at("clock_error_us"), nlohmann::json({0.0, 2.0}));
}

// As those of --parallel data-parallel, which has no buckets.
TEST(ChromeTrace, LeavesOutBytesThatNobodyKnows) {
  const auto file = nlohmann::json::parse(chrome_trace(two_ranks(0.001), {}));
  for (const auto& event : file.at("traceEvents"))
    if (event.at("ph") == "X") {
      EXPECT_FALSE(event.contains("args"));
    }
}

TEST(ChromeTrace, OfNothingIsStillJson) {
  EXPECT_TRUE(nlohmann::json::parse(chrome_trace({}, {})).at("traceEvents").empty());
}

TEST(Skew, NamesTheRankThatComesLastAndByHowMuch) {
  const auto late = skew(two_ranks(0.0015), 2);
  ASSERT_TRUE(late);
  EXPECT_EQ(late->steps, 3);
  EXPECT_EQ(late->last_rank, 1);
  EXPECT_EQ(late->last_in, 3);
  EXPECT_NEAR(late->median_s, 0.0015, 1e-9);
  EXPECT_THAT(sentence(*late, 1e-5), HasSubstr("1.50 ms in the median step"));
  EXPECT_THAT(sentence(*late, 1e-5), HasSubstr("rank 1 was the last in 3 of 3"));
}

TEST(Skew, IsNothingForOneRankOrNoBuckets) {
  EXPECT_FALSE(skew(std::vector<RankTimeline>(1), 2));
  EXPECT_FALSE(skew(two_ranks(0), 0));
  EXPECT_FALSE(skew(std::vector<RankTimeline>(2), 1));
}

TEST(WithWaits, CutsTransferWhereItWasWaitingAndLeavesAllElse) {
  const auto phase = [](double begin, double end, Phase what) {
    return TimelineSpan{begin, end, Lane::phase, static_cast<std::int32_t>(what)};
  };
  const std::vector<TimelineSpan> spans{phase(0, 2, Phase::backward),
                                        phase(2, 6, Phase::exposed_transfer),
                                        phase(6, 7, Phase::update),
                                        phase(7, 8, Phase::exposed_transfer),
                                        {2, 6, Lane::collective, 0}};
  // Before, across the begin, inside, the whole of the second.
  const std::vector<Interval> waits{{0.5, 1}, {1.5, 3}, {4, 4.5}, {6.5, 9}};
  const auto cut = with_waits(spans, waits);
  std::map<std::int32_t, double> seconds;
  double end = 0;
  for (const auto& span : cut) {
    if (span.lane != Lane::phase) continue;
    EXPECT_EQ(span.begin_s, end);  // no gap and no overlap
    end = span.end_s;
    seconds[span.what] += span.end_s - span.begin_s;
  }
  EXPECT_EQ(end, 8);
  EXPECT_DOUBLE_EQ(seconds[static_cast<int>(Phase::exposed_wait)], 1 + 0.5 + 1);
  EXPECT_DOUBLE_EQ(seconds[static_cast<int>(Phase::exposed_transfer)], 2.5);
  EXPECT_DOUBLE_EQ(seconds[static_cast<int>(Phase::backward)], 2);
  EXPECT_EQ(cut.back().lane, Lane::collective);
}

TEST(LedgerSpans, CoverTheTimeThatIsBooked) {
  Ledger ledger;
  std::vector<PhaseSpan> spans;
  ledger.keep_spans(&spans, 3);
  ledger.start();
  for (int i = 0; i < 4; ++i) {
    ledger.enter(Phase::forward);
    ledger.enter(Phase::backward);
  }
  ASSERT_EQ(spans.size(), 3u);  // and no more than that
  EXPECT_EQ(spans[1].phase, Phase::forward);
  for (std::size_t i = 1; i < spans.size(); ++i) EXPECT_EQ(spans[i].begin, spans[i - 1].end);
}

}  // namespace

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
