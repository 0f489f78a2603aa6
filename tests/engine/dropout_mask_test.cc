#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "engine/dropout_mask.h"

namespace paceline::engine {
namespace {

std::vector<bool> mask(const DropoutMask& dropout, std::int64_t count) {
  std::vector<bool> kept;
  dropout.for_each(count, [&](std::int64_t, bool keep) { kept.push_back(keep); });
  return kept;
}

TEST(DropoutMask, DropsAsOftenAsItSays) {
  for (const double probability : {0.1, 0.25, 0.5, 0.9}) {
    constexpr std::int64_t kCount = 200'000;
    const auto kept = mask(DropoutMask(1, 2, 3, 4, probability), kCount);
    const double dropped = static_cast<double>(std::ranges::count(kept, false)) / kCount;
    EXPECT_NEAR(dropped, probability, 5 * std::sqrt(probability * (1 - probability) / kCount));
  }
}

TEST(DropoutMask, KeepsEverythingAtZero) {
  for (const bool keep : mask(DropoutMask(1, 2, 3, 4, 0), 1001)) EXPECT_TRUE(keep);
}

TEST(DropoutMask, DiffersInEveryCoordinate) {
  std::set<std::vector<bool>> masks;
  for (std::uint64_t seed : {0ull, 1ull, 1ull << 32})
    for (std::uint64_t step : {0ull, 1ull, 1ull << 32})
      for (std::int64_t position : {0, 1, 50'000})
        for (int op : {0, 1, 9}) masks.insert(mask(DropoutMask(seed, step, position, op, 0.5), 128));
  EXPECT_EQ(masks.size(), 81u);
}

TEST(DropoutMask, GivesTheSameElementsWhateverTheLength) {
  const DropoutMask dropout(5, 6, 7, 8, 0.5);
  const auto all = mask(dropout, 1000);
  for (const std::int64_t count : {1, 2, 3, 4, 5, 63, 999}) {
    const auto part = mask(dropout, count);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin())) << count;
  }
}

/// The counters and key that a vectorised engine takes spell the same bits as `for_each`.
TEST(DropoutMask, IsPhiloxOfItsCounterAndKey) {
  const DropoutMask dropout(0x123456789abcdefull, 0x700000003ull, 70, 8, 0.3);
  const auto [a, b, c] = dropout.counter();
  const auto kept = mask(dropout, 40);
  for (std::uint32_t i = 0; i < 40; ++i) {
    const std::uint32_t word = base::philox({i / 4, a, b, c}, dropout.key())[i % 4];
    EXPECT_EQ(kept[i], word >= dropout.threshold());
  }
}

}  // namespace
}  // namespace paceline::engine
