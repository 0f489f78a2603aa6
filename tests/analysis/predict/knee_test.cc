#include <gtest/gtest.h>

#include "analysis/predict/forecast.h"

namespace paceline::analysis {
namespace {

constexpr std::int64_t kSomeWorkers[]{1, 2, 4, 8};

double falling(std::int64_t workers) { return 1 - 0.03 * static_cast<double>(workers - 1); }

std::vector<double> efficiencies() {
  std::vector<double> all;
  for (const auto workers : kSomeWorkers) all.push_back(falling(workers));
  return all;
}

TEST(Knee, IsFoundBetweenThePoints) {
  const std::vector<std::vector<double>> drawn(10, efficiencies());
  const auto knee = knee_of(0.84, kSomeWorkers, efficiencies(), drawn, falling);
  ASSERT_TRUE(knee.workers);
  EXPECT_EQ(*knee.workers, 6);  // 0.85; 7 have 0.82
  EXPECT_FALSE(knee.is_beyond);
  EXPECT_GT(knee.low, 4);
  EXPECT_LT(knee.high, 8);
}

TEST(Knee, IsBeyondWhereAllKeepIt) {
  const auto knee =
      knee_of(0.5, kSomeWorkers, efficiencies(), std::vector<std::vector<double>>{efficiencies()}, falling);
  ASSERT_TRUE(knee.workers);
  EXPECT_EQ(*knee.workers, 8);
  EXPECT_TRUE(knee.is_beyond);
  EXPECT_EQ(knee.high, 8);
}

TEST(Knee, IsNoneWhereNobodyKeepsIt) {
  const std::vector<double> low(4, 0.3);
  const auto knee = knee_of(0.5, kSomeWorkers, low, std::vector<std::vector<double>>{low},
                            [](std::int64_t) { return 0.3; });
  EXPECT_FALSE(knee.workers);
  EXPECT_EQ(knee.low, 0);
}

TEST(Knee, SpansWhatDrawsSay) {
  std::vector<std::vector<double>> drawn;
  for (int i = 0; i < 100; ++i)
    drawn.push_back(i % 2 == 0 ? std::vector{1.0, 0.9, 0.5, 0.3} : efficiencies());
  const auto knee = knee_of(0.84, kSomeWorkers, efficiencies(), drawn, falling);
  EXPECT_EQ(knee.low, 2);
  EXPECT_EQ(knee.high, 5);
}

}  // namespace
}  // namespace paceline::analysis
