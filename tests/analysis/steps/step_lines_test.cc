#include <gtest/gtest.h>

#include "analysis/steps/step_lines.h"

namespace paceline::analysis {
namespace {

TEST(Replay, HidesWhatEndsBeforeTheBackwardPass) {
  const std::vector<ReplayedBucket> buckets{{.ready_s = 1, .transfer_s = 2}, {.ready_s = 4, .transfer_s = 2}};
  EXPECT_DOUBLE_EQ(exposed_seconds(buckets, 6), 0);
  EXPECT_DOUBLE_EQ(exposed_seconds(buckets, 5), 1);
  EXPECT_DOUBLE_EQ(exposed_seconds({}, 5), 0);
}

TEST(Replay, LetsBucketsQueueBehindEachOther) {
  // 1 to 4, then 4 to 7 though ready at 2, then 7 to 8 though ready at 5: backward ends at 5.
  const std::vector<ReplayedBucket> buckets{
      {.ready_s = 1, .transfer_s = 3}, {.ready_s = 2, .transfer_s = 3}, {.ready_s = 5, .transfer_s = 1}};
  EXPECT_DOUBLE_EQ(exposed_seconds(buckets, 5), 3);
}

TEST(Replay, FindsTheLineThroughTransferTimes) {
  const std::vector<TimedMessage> line{{1e6, 0.003}, {4e6, 0.009}, {2e6, 0.005}};
  const auto link = fit_buckets(line);
  ASSERT_TRUE(link.has_value());
  EXPECT_NEAR(link->alpha_s, 0.001, 1e-12);
  EXPECT_NEAR(link->seconds_per_byte, 2e-9, 1e-18);
}

TEST(Replay, NeverFindsALinkThatCannotBe) {
  const std::vector<TimedMessage> falling{{1e6, 0.004}, {4e6, 0.002}};
  EXPECT_EQ(fit_buckets(falling)->seconds_per_byte, 0);
  EXPECT_GT(fit_buckets(falling)->alpha_s, 0);
  const std::vector<TimedMessage> steep{{1e6, 0.001}, {2e6, 0.004}};
  EXPECT_EQ(fit_buckets(steep)->alpha_s, 0);
  EXPECT_GT(fit_buckets(steep)->seconds_per_byte, 0);
  const std::vector<TimedMessage> alike{{3e6, 0.001}, {4e6, 0.002}};
  EXPECT_FALSE(fit_buckets(alike).has_value());
  EXPECT_FALSE(fit_buckets({}).has_value());
}

TEST(Replay, CutsTheSameGradientAnew) {
  const std::vector<double> ends{4, 8}, ready{2, 3};
  const BucketLink link{.alpha_s = 1, .seconds_per_byte = 0.5};
  const auto three = cut_buckets(ends, ready, 3, link);
  ASSERT_EQ(three.size(), 3u);
  EXPECT_DOUBLE_EQ(three[0].ready_s, 1.5);  // three quarters of the first
  EXPECT_DOUBLE_EQ(three[1].ready_s, 2.5);  // half of the second
  EXPECT_DOUBLE_EQ(three[2].ready_s, 3);
  EXPECT_DOUBLE_EQ(three[0].transfer_s, 2.5);
  EXPECT_DOUBLE_EQ(three[2].transfer_s, 2);
  const auto same = cut_buckets(ends, ready, 4, link);
  ASSERT_EQ(same.size(), 2u);
  EXPECT_DOUBLE_EQ(same[0].ready_s, 2);
  EXPECT_DOUBLE_EQ(same[1].ready_s, 3);
}

}  // namespace
}  // namespace paceline::analysis
