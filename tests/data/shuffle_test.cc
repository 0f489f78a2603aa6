#include "data/shuffle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "data/loader.h"
#include "fakes.h"

namespace paceline::data {
namespace {

using testing::ElementsAre;

// What trainings of before had: their bits depend on it.
TEST(Permutation, OrdersAsItAlwaysDid) {
  const auto first_six = [](std::int64_t size, std::int64_t epoch) {
    const Sampler sampler(size, 7);
    std::vector<std::int64_t> indices;
    for (std::int64_t p = 0; p < 6; ++p) indices.push_back(sampler.index(epoch, p));
    return indices;
  };
  EXPECT_THAT(first_six(10, 0), ElementsAre(0, 6, 5, 8, 7, 2));
  EXPECT_THAT(first_six(65, 3), ElementsAre(39, 25, 40, 28, 58, 10));
  EXPECT_THAT(first_six(50000, 0), ElementsAre(29741, 20969, 45330, 15483, 34142, 19307));
  EXPECT_THAT(first_six(50000, 3), ElementsAre(44840, 27243, 32305, 15531, 11611, 17929));
}

std::vector<std::int64_t> epoch_of(const WindowOrder& order, std::int64_t epoch) {
  std::vector<std::int64_t> indices;
  for (std::int64_t p = 0; p < order.size(); ++p) indices.push_back(order.index(epoch, p));
  return indices;
}

/// Shards of one sample, of a few, of many, and of none.
const std::vector<std::vector<std::int64_t>> kLists{{1},
                                                    {7},
                                                    {1000},
                                                    {1, 1, 1, 1, 1, 1, 1},
                                                    {1000, 1, 7},
                                                    {7, 1000, 1, 1, 7, 1000},
                                                    {0, 5, 0},
                                                    {3, 0, 4},
                                                    std::vector<std::int64_t>(100, 3)};

TEST(WindowOrder, HasEverySampleOnceAnEpoch) {
  for (const auto& sizes : kLists)
    for (const std::int64_t window : {1, 2, 3, 64, 1000}) {
      const WindowOrder order(sizes, window, 3);
      ASSERT_EQ(order.size(), std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}));
      for (const std::int64_t epoch : {std::int64_t{0}, std::int64_t{1}, std::int64_t{5'000'000'000}}) {
        auto indices = epoch_of(order, epoch);
        std::sort(indices.begin(), indices.end());
        for (std::int64_t i = 0; i < order.size(); ++i) ASSERT_EQ(indices[static_cast<std::size_t>(i)], i);
      }
    }
}

TEST(WindowOrder, TakesOnlyTheShardsOfItsWindow) {
  const std::vector<std::int64_t> sizes(20, 50);
  for (const std::int64_t window : {1, 3, 8}) {
    const WindowOrder order(sizes, window, 11);
    std::set<std::int64_t> done;
    for (std::int64_t first = 0; first < order.size(); first += 50 * window) {
      std::set<std::int64_t> shards;
      for (auto p = first; p < std::min(first + 50 * window, order.size()); ++p)
        shards.insert(order.index(2, p) / 50);
      EXPECT_LE(shards.size(), static_cast<std::size_t>(window));
      for (const auto shard : shards) EXPECT_TRUE(done.insert(shard).second) << "it comes in one window";
    }
    EXPECT_EQ(done.size(), sizes.size());
  }
}

TEST(WindowOrder, DrawsShardsAndSamplesAnewEachEpoch) {
  const std::vector<std::int64_t> sizes(40, 100);
  const WindowOrder order(sizes, 4, 1), again(sizes, 4, 1), other(sizes, 4, 2);
  EXPECT_EQ(epoch_of(order, 0), epoch_of(again, 0));
  const auto equal = [](const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
    int positions = 0;
    for (std::size_t i = 0; i < a.size(); ++i) positions += a[i] == b[i];
    return positions;
  };
  // One position on average, as of any two permutations; ten are a chance of 1e-7.
  EXPECT_LE(equal(epoch_of(order, 0), epoch_of(order, 1)), 10);
  EXPECT_LE(equal(epoch_of(order, 0), epoch_of(other, 0)), 10);
  EXPECT_LE(equal(epoch_of(order, 1), epoch_of(other, 0)), 10) << "seed and epoch are not added";
  // Inside a window the samples are mixed: neighbours of a shard do not stay neighbours.
  const auto indices = epoch_of(order, 0);
  int near = 0;
  for (std::size_t i = 1; i < indices.size(); ++i) near += std::abs(indices[i] - indices[i - 1]) == 1;
  EXPECT_LT(near, 60);  // 20 expected: 2 of 400 neighbours for each of 4,000
}

/// Workers take parts of each global batch, whatever the shards: no number of them changes an order.
TEST(WindowOrder, IsTheSameForAnyWorkers) {
  for (const std::vector<std::int64_t>& sizes : {std::vector<std::int64_t>{1, 7, 1000}, {7, 7, 7, 7, 7, 1}}) {
    const auto order = std::make_shared<const WindowOrder>(sizes, 2, 5);
    const NumberedDataset dataset(order->size());
    constexpr std::int64_t kBatch = 12;
    std::vector<std::int32_t> expected;
    for (const std::int64_t workers : {1, 2, 3, 4}) {
      std::vector<std::unique_ptr<Loader>> loaders;
      for (std::int64_t rank = 0; rank < workers; ++rank)
        loaders.push_back(std::make_unique<Loader>(dataset, Sampler(order->size(), order),
                                                   full_augment(dataset.format()),
                                                   LoaderOptions{.global_batch = kBatch,
                                                                 .local_batch = kBatch / workers,
                                                                 .first = rank * kBatch / workers,
                                                                 .threads = static_cast<int>(rank % 3)}));
      std::vector<std::int32_t> labels;
      for (std::int64_t step = 0; step < 2 * loaders[0]->steps_per_epoch(); ++step)
        for (auto& loader : loaders) {
          const auto batch = loader->next().labels;
          labels.insert(labels.end(), batch.begin(), batch.end());
        }
      if (workers == 1) expected = labels;
      EXPECT_EQ(labels, expected) << workers;
    }
    const std::set<std::int32_t> first_epoch(
        expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(expected.size() / 2));
    EXPECT_EQ(first_epoch.size(), expected.size() / 2)
        << "each once, but for those after the last full batch";
  }
}

}  // namespace
}  // namespace paceline::data
