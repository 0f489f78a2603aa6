#include "analysis/predict/waiting.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "analysis/simulated_steps.h"

namespace paceline::analysis {
namespace {

/// 1 and an exponential of mean 1, at `count` equally likely places.
OwnFactors exponential(int count) {
  OwnFactors factors;
  for (int i = 0; i < count; ++i) factors.push_back(1 - std::log(1 - (i + 0.5) / count));
  return factors;
}

/// The expected largest of n draws from an exponential of mean 1.
double harmonic(std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 1; i <= n; ++i) sum += 1.0 / static_cast<double>(i);
  return sum;
}

TEST(Waiting, LargestOfExponentialDrawsIsHarmonic) {
  const OwnWork work{.others = exponential(8000), .slowest = {}};
  const std::vector<std::int64_t> workers{2, 4, 16, 64};
  const auto largest = largest_factors(work, workers, Tail::none);
  for (std::size_t i = 0; i < workers.size(); ++i) {
    EXPECT_NEAR(largest[i].mean, 1 + harmonic(workers[i]), 0.02) << workers[i];
    double mean = 0;
    for (const double part : largest[i].parts) mean += part / LargestFactor::kParts;
    EXPECT_NEAR(mean, largest[i].mean, 1e-9);
    EXPECT_FALSE(largest[i].is_beyond_samples);
  }
}

TEST(Waiting, OneWorkerWaitsForNobody) {
  const OwnWork work{.others = exponential(100), .slowest = {}};
  EXPECT_EQ(largest_factors(work, std::vector<std::int64_t>{1}, Tail::none).front().mean, 1);
}

TEST(Waiting, SlowestWorkerCountsOnce) {
  const OwnWork work{.others = OwnFactors(50, 1.0), .slowest = OwnFactors(50, 1.3)};
  for (const auto& largest : largest_factors(work, std::vector<std::int64_t>{2, 5, 5000}, Tail::none))
    EXPECT_NEAR(largest.mean, 1.3, 1e-12);
}

TEST(Waiting, TailsAreAssumedBeyondTheSamples) {
  const OwnWork work{.others = exponential(500), .slowest = {}};
  const std::vector<std::int64_t> workers{50, 1000};
  const auto least = largest_factors(work, workers, Tail::none);
  const auto exponential_tail = largest_factors(work, workers, Tail::exponential);
  const auto pareto = largest_factors(work, workers, Tail::pareto);
  EXPECT_FALSE(least[0].is_beyond_samples);
  EXPECT_TRUE(least[1].is_beyond_samples);
  EXPECT_NEAR(exponential_tail[1].mean, 1 + harmonic(1000), 0.05 * harmonic(1000));
  EXPECT_LT(least[1].mean, exponential_tail[1].mean);
  EXPECT_GT(pareto[1].mean, exponential_tail[1].mean);
}

/// Own work of two ranks; each adds `own` times a draw of its own and `shared` times one of both.
measure::Record of_two(double own, double shared) {
  auto record = simulate({.workers = 2, .steps = 2000});
  base::Rng rng(5, base::Purpose::test);
  for (std::size_t step = 0; step < 2000; ++step) {
    const double common = rng.normal();
    for (auto& rank : record.ranks) (*rank.own_s)[step] = 1 + 0.05 * (own * rng.normal() + shared * common);
  }
  return record;
}

TEST(Waiting, WhatRanksShareMakesNobodyWait) {
  const std::vector<std::int64_t> two{2};
  const auto apart = of_two(1, 0), together = of_two(0, 1);
  const measure::Record* const records[]{&apart, &together};
  // The larger of two normal draws is 1 / sqrt(pi) standard deviations above the mean.
  const auto first = own_work_of(std::span(records, 1)), second = own_work_of(std::span(records + 1, 1));
  EXPECT_NEAR(largest_factors(first, two, Tail::none)[0].mean, 1 + 0.05 / std::sqrt(M_PI), 0.004);
  EXPECT_NEAR(first.shared_variance, 0, 0.05);
  EXPECT_NEAR(largest_factors(second, two, Tail::none)[0].mean, 1, 0.002);
  EXPECT_GT(second.shared_variance, 0.95);
}

TEST(Waiting, LargestNormalIsKnown) {
  // Exact: 0.5642 of 2, 1.5388 of 10, 2.5076 of 100.
  EXPECT_EQ(largest_normal(1), 0);
  EXPECT_NEAR(largest_normal(10), 1.5388, 0.015);
  EXPECT_NEAR(largest_normal(100), 2.5076, 0.025);
}

}  // namespace
}  // namespace paceline::analysis
