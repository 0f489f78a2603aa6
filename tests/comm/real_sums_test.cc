#include "comm/real_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"

namespace paceline::comm {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// 1 ms to add a megabyte of another rank.
constexpr SumSpeed kSpeed{.ranks = 2, .bytes = 1'000'000, .processor_s = 1e-3};

std::string refusal(const EmulatedLink& link, int ranks, const std::vector<std::int64_t>& buckets) {
  try {
    return require_slow_link(link, ranks, buckets, kSpeed);
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::usage);
    return std::string("refused: ") + error.what();
  }
}

TEST(SumSpeed, GrowsWithBytesAndRanks) {
  EXPECT_DOUBLE_EQ(kSpeed.seconds(2, 4e6), 4e-3);
  EXPECT_DOUBLE_EQ(kSpeed.seconds(16, 1e6), 15e-3);
  EXPECT_DOUBLE_EQ(kSpeed.seconds(1, 1e6), 0);
}

TEST(SumSpeed, IsMeasuredAndPositive) {
  const auto speed = measure_sums(3, 400'000);
  EXPECT_EQ(speed.ranks, 3);
  EXPECT_EQ(speed.bytes, 400'000);
  EXPECT_GT(speed.processor_s, 0);
  EXPECT_LT(speed.processor_s, 1);
}

TEST(RealSums, AcceptALinkThreeTimesAsSlow) {
  // Four ranks: 3 ms a megabyte to sum, 1.5 MB over the link. 9 ms at 1.5 / 9e-3 MB/s.
  EXPECT_THAT(refusal({.bytes_per_s = 1.5e6 / 9e-3 * 0.999}, 4, {1'000'000}),
              AllOf(HasSubstr("3 ms of processor time"), HasSubstr("9.01 ms on the emulated link")));
  EXPECT_THAT(refusal({.bytes_per_s = 1.5e6 / 9e-3 * 1.001}, 4, {1'000'000}), HasSubstr("refused: "));
}

TEST(RealSums, NameTheMostWorkersAndLargestBucket) {
  // A hop of 1 ms: 2(N-1) ms for 3(N-1) ms of sums of a megabyte, so 0.667 MB fit any number of workers.
  EXPECT_THAT(refusal({.latency_s = 1e-3}, 4, {500'000, 1'000'000}),
              AllOf(HasSubstr("a bucket of 1 MB takes 3 ms"), HasSubstr("at least 3 times as long"),
                    HasSubstr("take buckets of at most 0.666 MB")));
  // 1 GB/s: 2(N-1)/N ms a megabyte against 3 x (N-1) ms: no N, no bucket.
  EXPECT_THAT(refusal({.bytes_per_s = 1e9}, 4, {1'000'000}), HasSubstr("take a slower --emulate-link"));
  // 150 MB/s: 2(N-1)/N / 0.15 ms against 3 (N-1) ms: up to N = 4.
  EXPECT_THAT(refusal({.bytes_per_s = 150e6}, 8, {1'000'000}),
              AllOf(HasSubstr("over 8 workers"), HasSubstr("take at most 4 workers")));
}

}  // namespace
}  // namespace paceline::comm
