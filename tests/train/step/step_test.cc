#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/rng.h"
#include "train/step/step.h"

namespace paceline::train {
namespace {

constexpr std::int64_t kElements = 37;

std::vector<float> random_gradient(std::uint64_t shard) {
  base::Rng rng(7, base::Purpose::test, shard);
  std::vector<float> gradient(kElements);
  for (auto& value : gradient) value = rng.normal() * std::exp2(static_cast<float>(rng.below(20)));
  return gradient;
}

std::vector<float> plus(const std::vector<float>& left, const std::vector<float>& right) {
  std::vector<float> sum(left);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += right[i];
  return sum;
}

/// The tree by its definition: neighbours, level by level; an odd last one is carried up.
std::vector<float> tree(std::vector<std::vector<float>> level) {
  while (level.size() > 1) {
    std::vector<std::vector<float>> next;
    for (std::size_t i = 0; i < level.size(); i += 2)
      next.push_back(i + 1 < level.size() ? plus(level[i], level[i + 1]) : level[i]);
    level = std::move(next);
  }
  return level.front();
}

std::vector<float> sum_of(std::int64_t first, std::int64_t count) {
  std::vector<float> values(kElements);
  const auto gradient = base::host_array(values);
  ShardSums sums(count, gradient);
  for (std::int64_t shard = first; shard + 1 < first + count; ++shard) {
    std::ranges::copy(random_gradient(static_cast<std::uint64_t>(shard)), values.begin());
    sums.add(gradient);
  }
  std::ranges::copy(random_gradient(static_cast<std::uint64_t>(first + count - 1)), values.begin());
  sums.join_last(gradient, 0, 10);  // bucket by bucket, as the step does
  sums.join_last(gradient, 10, kElements);
  sums.clear();
  return values;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class ShardCount : public testing::TestWithParam<int> {};

TEST_P(ShardCount, GivesTheBitsOfTheFixedTree) {
  std::vector<std::vector<float>> leaves;
  for (int i = 0; i < GetParam(); ++i) leaves.push_back(random_gradient(static_cast<std::uint64_t>(i)));
  EXPECT_TRUE(same_bits(sum_of(0, GetParam()), tree(leaves)));
}

INSTANTIATE_TEST_SUITE_P(Counts, ShardCount, testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 31, 32));

TEST(ShardSums, JoinsToTheSameBitsForEveryNumberOfWorkersWithAPowerOfTwoEach) {
  for (const auto& [shards, workers] : {std::pair{8, 2}, {8, 4}, {8, 8}, {12, 3}, {6, 3}, {16, 4}}) {
    std::vector<std::vector<float>> roots;
    for (int worker = 0; worker < workers; ++worker)
      roots.push_back(sum_of(worker * shards / workers, shards / workers));
    EXPECT_TRUE(same_bits(tree(roots), sum_of(0, shards))) << shards << " shards, " << workers << " workers";
  }
}

TEST(ShardSums, AddsMicroBatchesOneByOne) {
  std::vector<float> values(kElements), want;
  const auto gradient = base::host_array(values);
  ShardSums sums(5, gradient, PassOrder::one_by_one);
  for (int step = 0; step < 2; ++step) {  // nothing is left of the step before
    for (std::uint64_t pass = 0; pass < 5; ++pass) {
      const auto next = random_gradient(pass);
      want = pass == 0 ? next : plus(want, next);
      std::ranges::copy(next, values.begin());
      if (pass < 4) sums.add(gradient);
    }
    sums.join_last(gradient, 0, 10);
    sums.join_last(gradient, 10, kElements);
    sums.clear();
    EXPECT_TRUE(same_bits(values, want));
  }
  EXPECT_EQ(ShardSums::arrays(5, PassOrder::one_by_one), 1);
  EXPECT_EQ(ShardSums::arrays(1, PassOrder::one_by_one), 0);
}

TEST(ShardSums, KeepsNoMoreArraysThanTheTreeHasLevels) {
  EXPECT_EQ(ShardSums::arrays(1), 0);
  EXPECT_EQ(ShardSums::arrays(2), 1);
  EXPECT_EQ(ShardSums::arrays(3), 2);
  EXPECT_EQ(ShardSums::arrays(8), 3);
  EXPECT_EQ(ShardSums::arrays(9), 4);
}

}  // namespace
}  // namespace paceline::train
