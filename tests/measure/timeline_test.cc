#include "measure/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "measure/ledger.h"

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
}  // namespace paceline::measure
