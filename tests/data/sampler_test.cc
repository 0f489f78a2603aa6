#include "data/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <tuple>
#include <vector>

namespace paceline::data {
namespace {

using testing::Each;

std::vector<std::int64_t> order(const Sampler& sampler, std::int64_t epoch) {
  std::vector<std::int64_t> indices;
  for (std::int64_t p = 0; p < sampler.size(); ++p) indices.push_back(sampler.index(epoch, p));
  return indices;
}

int equal_positions(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  int equal = 0;
  for (std::size_t i = 0; i < a.size(); ++i) equal += a[i] == b[i];
  return equal;
}

class SamplerTable : public testing::TestWithParam<std::tuple<std::int64_t, std::int64_t, std::uint64_t>> {};

TEST_P(SamplerTable, CoversEveryIndexOnce) {
  const auto [size, epoch, seed] = GetParam();
  std::vector<int> seen(static_cast<std::size_t>(size));
  for (const auto index : order(Sampler(size, seed), epoch)) {
    ASSERT_GE(index, 0);
    ASSERT_LT(index, size);
    ++seen[static_cast<std::size_t>(index)];
  }
  EXPECT_THAT(seen, Each(1));
}

INSTANTIATE_TEST_SUITE_P(
    SizesEpochsSeeds, SamplerTable,
    testing::Combine(testing::Values(0, 1, 2, 3, 4, 5, 7, 16, 17, 64, 65, 1000, 1024, 4099, 50000),
                     testing::Values(0, 1, 2, 5'000'000'000), testing::Values(0u, 1u, 0xffffffffffffffffu)));

TEST(Sampler, IsTheIdentityWithoutShuffle) {
  const Sampler sampler(1000, 7, false);
  for (std::int64_t p = 0; p < 1000; ++p) EXPECT_EQ(sampler.index(3, p), p);
}

// Two unrelated permutations agree in one position on average (Poisson): more than ten is a chance of 1e-8.
TEST(Sampler, OrdersEveryEpochAnew) {
  const Sampler sampler(50000, 0);
  for (int epoch = 0; epoch < 4; ++epoch)
    for (int other = 0; other < epoch; ++other)
      EXPECT_LE(equal_positions(order(sampler, epoch), order(sampler, other)), 10) << epoch << " " << other;
}

// With seed + epoch as the seed of an epoch, the run with seed 1 begins with what the run with seed 0 does
// second.
TEST(Sampler, DoesNotRepeatAnotherSeedsEpochs) {
  const Sampler first(50000, 0), second(50000, 1);
  EXPECT_LE(equal_positions(order(first, 1), order(second, 0)), 10);
  EXPECT_LE(equal_positions(order(first, 2), order(second, 1)), 10);
  EXPECT_LE(equal_positions(order(first, 0), order(second, 0)), 10);
}

// Chi-square with size - 1 degrees of freedom; the bound is 5 standard deviations over its mean.
TEST(Sampler, PutsASampleAnywhereWithEqualChance) {
  for (const std::int64_t size : {3, 5, 10, 37}) {
    const Sampler sampler(size, 11);
    for (const std::int64_t position : {std::int64_t{0}, size / 2, size - 1}) {
      std::vector<int> counts(static_cast<std::size_t>(size));
      constexpr int kEpochs = 20000;
      for (int epoch = 0; epoch < kEpochs; ++epoch)
        ++counts[static_cast<std::size_t>(sampler.index(epoch, position))];
      const double expected = static_cast<double>(kEpochs) / static_cast<double>(size);
      double chi_square = 0;
      for (const int count : counts) chi_square += (count - expected) * (count - expected) / expected;
      const double freedom = static_cast<double>(size - 1);
      EXPECT_LT(chi_square, freedom + 5 * std::sqrt(2 * freedom)) << size << " " << position;
    }
  }
}

// Neighbours in the file must not stay neighbours in the epoch: a file sorted by class would give batches of
// one.
TEST(Sampler, SeparatesNeighbours) {
  const auto indices = order(Sampler(50000, 3), 0);
  int near = 0;
  for (std::size_t i = 1; i < indices.size(); ++i) near += std::abs(indices[i] - indices[i - 1]) <= 50;
  EXPECT_LT(near, 200);  // 100 expected, standard deviation 10
}

}  // namespace
}  // namespace paceline::data
