#include "analysis/steps/collectives.h"

#include <gtest/gtest.h>

namespace paceline::analysis {
namespace {

measure::CollectiveRecord all_reduce(std::int64_t bytes, std::vector<double> seconds) {
  return {.collective = "all_reduce",
          .in_place = true,
          .bytes = bytes,
          .correct = true,
          .seconds = std::move(seconds)};
}

TEST(Collectives, RatesAreBytesOverTimeWithTheIntervalTurnedRound) {
  const auto result = figures(all_reduce(4'000'000, {0.001, 0.002, 0.004}), 4);
  ASSERT_TRUE(result.algbw && result.busbw);
  EXPECT_DOUBLE_EQ(result.algbw->median, 2);
  EXPECT_DOUBLE_EQ(result.algbw->low, 1);
  EXPECT_DOUBLE_EQ(result.algbw->high, 4);
  EXPECT_DOUBLE_EQ(result.busbw->median, 3) << "2 (N-1)/N of it";
}

TEST(Collectives, OneRankHasATimeAndNoBandwidth) {
  // It was said to give 48277 GB/s: the call's time over bytes that never moved.
  const auto result = figures(all_reduce(4'000'000, {0.001}), 1);
  EXPECT_DOUBLE_EQ(result.seconds.median, 0.001);
  EXPECT_FALSE(result.algbw || result.busbw);
}

TEST(Collectives, ASlopeWithinTheLatencyIsNoBandwidth) {
  measure::Record record;
  record.workers = 2;
  record.collectives = {all_reduce(1024, {57e-6}), all_reduce(65536, {58e-6})};
  measure::LinkFitRecord fit{
      .collective = "all_reduce", .in_place = true, .alpha_s = 57e-6, .bytes_per_s = 4117e9, .residual = 0.1};
  EXPECT_FALSE(shows_bandwidth(fit, record));
  fit.bytes_per_s = 5e9;  // 13 of 70 us
  EXPECT_TRUE(shows_bandwidth(fit, record));
  fit.in_place = false;
  EXPECT_FALSE(shows_bandwidth(fit, record)) << "no such times";
  fit.in_place = true;
  record.workers = 1;
  EXPECT_FALSE(shows_bandwidth(fit, record)) << "a record of before the fit was left out for one rank";
}

}  // namespace
}  // namespace paceline::analysis
