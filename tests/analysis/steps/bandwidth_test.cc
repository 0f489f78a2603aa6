#include "analysis/steps/bandwidth.h"

#include <gtest/gtest.h>

#include "analysis/compare/cells.h"
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
  EXPECT_NEAR(one->utilisation->high, 4.4695848 / 4, 1e-9);
  const auto alone = make_cells({&records.front(), 1});
  EXPECT_NEAR(bandwidth(alone[0])->utilisation->median, 4.4695848 / 4, 1e-9);
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
}  // namespace paceline::analysis
