#include <gtest/gtest.h>

#include <vector>

#include "analysis/compare/cell.h"
#include "analysis/steps/bandwidth.h"
#include "golden/records.h"

namespace paceline::analysis {
namespace {

using golden::make_record;
using measure::Record;

TEST(Bandwidth, FollowsItsFormulas) {
  // 44.695848 MB in 10 ms among 4: algbw 4.4695848 GB/s, busbw x 1.5.
  const auto record = make_record({.workers = 4, .communication = 0.05, .transfer = 0.01});
  const auto cells = make_cells({&record, 1});
  const auto one = bandwidth(cells[0]);
  ASSERT_TRUE(one.has_value());
  EXPECT_DOUBLE_EQ(one->bytes_per_step, 44695848);
  EXPECT_NEAR(one->algbw.median, 4.4695848, 1e-9);
  EXPECT_NEAR(one->busbw.median, 6.7043772, 1e-9);
  EXPECT_NEAR(one->ring_per_step, 67043772, 1e-3);
  EXPECT_TRUE(one->is_ring_traffic);
  EXPECT_DOUBLE_EQ(one->largest_message, 4e6);
  EXPECT_EQ(one->buckets, 12);
  EXPECT_NEAR(one->utilisation->median, 6.7043772 / 9, 1e-9);
}

TEST(Bandwidth, CountsTheBytesOfAnEpochAsItsStepsTimesOneStep) {
  const auto record = make_record({.workers = 4, .communication = 0.05, .transfer = 0.01});
  const auto cells = make_cells({&record, 1});
  EXPECT_DOUBLE_EQ(bandwidth(cells[0])->bytes_per_epoch, 97.0 * 44695848);
}

/// The votes of a device's step are moved in the same time.
TEST(Bandwidth, IsOfAllThatTheBucketsHold) {
  auto record = make_record({.workers = 4, .communication = 0.05, .transfer = 0.01});
  record.device = "cuda";
  record.buckets.back().bytes += 32;
  record.communication.vote_bytes = 32;
  const auto cells = make_cells({&record, 1});
  const auto one = bandwidth(cells[0]);
  ASSERT_TRUE(one.has_value());
  EXPECT_DOUBLE_EQ(one->bytes_per_step, 44695848 + 32);
  EXPECT_NEAR(one->algbw.median, 4.469588, 1e-9);
}

TEST(Bandwidth, IsNothingForOneWorker) {
  const auto record = make_record({});
  const auto cells = make_cells({&record, 1});
  EXPECT_FALSE(bandwidth(cells[0]).has_value());
}

TEST(Bandwidth, HasNoUtilisationWithoutACeiling) {
  auto record = make_record({.workers = 2, .communication = 0.05, .transfer = 0.01});
  record.communication.memory_ceiling_gb_per_s.reset();
  const auto cells = make_cells({&record, 1});
  EXPECT_FALSE(bandwidth(cells[0])->utilisation.has_value());
  record.communication.memory_ceiling_gb_per_s = 0;  // one thread for all workers measures none
  EXPECT_FALSE(bandwidth(make_cells({&record, 1})[0])->ceiling.has_value());
}

TEST(Bandwidth, UtilisationIsAsUnsureAsItsCeiling) {
  std::vector<Record> records;
  for (const double ceiling : {4.0, 8.0, 16.0}) {
    records.push_back(make_record({.workers = 2,
                                   .repeat = static_cast<int>(records.size()),
                                   .communication = 0.05,
                                   .transfer = 0.010}));
    records.back().communication.memory_ceiling_gb_per_s = ceiling;
  }
  const auto cells = make_cells(records);
  const auto one = bandwidth(cells[0]);
  EXPECT_EQ(one->ceiling->median, 8);
  EXPECT_EQ(one->ceiling->low, 4);
  EXPECT_EQ(one->ceiling->high, 16);
  EXPECT_NEAR(one->utilisation->median, 4.4695848 / 8, 1e-9);
  EXPECT_NEAR(one->utilisation->low, 4.4695848 / 16, 1e-9);
  EXPECT_EQ(one->utilisation->high, 1) << "4.47 / 4 would be more than all of it";
  const auto above = make_cells({&records.front(), 1});
  EXPECT_FALSE(bandwidth(above[0])->utilisation) << "steps faster than their ceiling: it is none";
  const auto alone = make_cells({&records.back(), 1});
  EXPECT_NEAR(bandwidth(alone[0])->utilisation->median, 4.4695848 / 16, 1e-9);
}

TEST(Bandwidth, TakesItsIntervalFromTheRepeats) {
  const std::vector<Record> records{
      make_record({.workers = 2, .repeat = 0, .communication = 0.05, .transfer = 0.010}),
      make_record({.workers = 2, .repeat = 1, .communication = 0.05, .transfer = 0.020}),
      make_record({.workers = 2, .repeat = 2, .communication = 0.05, .transfer = 0.040})};
  const auto cells = make_cells(records);
  const auto one = bandwidth(cells[0]);
  EXPECT_NEAR(one->transfer_s.median, 0.020, 1e-12);
  EXPECT_NEAR(one->algbw.low, 0.044695848 / 0.040, 1e-9);
  EXPECT_NEAR(one->algbw.high, 0.044695848 / 0.010, 1e-9);
}

}  // namespace

namespace {

std::vector<TimedMessage> line(double alpha, double bandwidth, double noise = 0) {
  std::vector<TimedMessage> messages;
  double sign = 1;
  for (double bytes = 1024; bytes <= 256e6; bytes *= 4, sign = -sign)
    messages.push_back({bytes, (alpha + bytes / bandwidth) * (1 + sign * noise)});
  return messages;
}

TEST(LinkFit, FindsTheLineThatTheTimesLieOn) {
  for (const double alpha : {0.0, 5e-6, 1e-3})
    for (const double bandwidth : {1e8, 1.25e10}) {
      const auto fit = fit_link(line(alpha, bandwidth));
      ASSERT_TRUE(fit);
      EXPECT_NEAR(fit->alpha_s, alpha, 1e-12 + 1e-6 * alpha);
      EXPECT_NEAR(fit->bytes_per_s, bandwidth, 1e-6 * bandwidth);
      EXPECT_LT(fit->residual, 1e-6);
    }
}

TEST(LinkFit, SmallMessagesCountAsMuchAsLargeOnes) {
  const auto fit = fit_link(line(50e-6, 1e9, 0.05));
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->alpha_s, 50e-6, 0.1 * 50e-6);
  EXPECT_NEAR(fit->bytes_per_s, 1e9, 0.1 * 1e9);
  EXPECT_NEAR(fit->residual, 0.05, 0.02);
}

TEST(LinkFit, IsNeverALatencyBelowNothing) {
  const auto fit = fit_link(std::vector<TimedMessage>{{1000, 1e-6}, {2000, 4e-6}, {4000, 9e-6}});
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->alpha_s, 0);
}

TEST(LinkFit, SaysNothingWhereThereIsNoLine) {
  EXPECT_FALSE(fit_link(std::vector<TimedMessage>{{1000, 1e-6}, {2000, 2e-6}}));
  EXPECT_FALSE(fit_link(std::vector<TimedMessage>{{1000, 3e-6}, {2000, 2e-6}, {4000, 1e-6}}));
  EXPECT_FALSE(fit_link(std::vector<TimedMessage>{{1000, 1e-6}, {1000, 1e-6}, {1000, 1e-6}}));
  EXPECT_FALSE(fit_link(std::vector<TimedMessage>{{1000, 0}, {2000, 1}, {4000, 2}}));
}

}  // namespace

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
