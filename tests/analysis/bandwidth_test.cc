#include "analysis/bandwidth.h"

#include <gtest/gtest.h>

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

TEST(Bandwidth, JoinsTheCeilingsIntervalToUtilisations) {
  std::vector<Record> records;
  for (const double ceiling : {8.0, 10.0, 12.5}) {
    records.push_back(make_record({.workers = 2,
                                   .repeat = static_cast<int>(records.size()),
                                   .communication = 0.05,
                                   .transfer = 0.010}));
    records.back().communication.memory_ceiling_gb_per_s = ceiling;
  }
  const auto cells = make_cells(records);
  const auto one = bandwidth(cells[0]);
  EXPECT_EQ(one->ceiling->median, 10);
  EXPECT_EQ(one->ceiling->low, 8);
  EXPECT_EQ(one->ceiling->high, 12.5);
  EXPECT_NEAR(one->utilisation->median, one->busbw.median / 10, 1e-12);
  EXPECT_LE(one->utilisation->low, one->busbw.median / 12.4);
  EXPECT_GE(one->utilisation->high, one->busbw.median / 8.1);
}

}  // namespace
}  // namespace paceline::analysis
