#include "engine/cpu/parallel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace paceline::engine::cpu {
namespace {

using base::ThreadPool;

/// The items of thread `thread`'s range.
std::vector<int> range_of(const std::vector<int>& order, int thread, int threads) {
  const auto count = static_cast<int>(order.size());
  return {order.begin() + ThreadPool::first_of(thread, threads, count),
          order.begin() + ThreadPool::first_of(thread + 1, threads, count)};
}

TEST(Parallel, GivesEachRangeItsPartOfTwoListsTheLongerTasksFirst) {
  EXPECT_EQ(range_of(in_ranges(4, 8, 2), 0, 2), (std::vector<int>{0, 1, 4, 5, 6, 7}));
  EXPECT_EQ(range_of(in_ranges(4, 8, 2), 1, 2), (std::vector<int>{2, 3, 8, 9, 10, 11}));
  for (const int threads : {1, 2, 3, 8})
    for (const auto& [longer, shorter] :
         {std::pair{0, 5}, {1, 0}, {1, 32}, {8, 32}, {3, 7}, {1, 7}, {2, 11}}) {
      auto order = in_ranges(longer, shorter, threads);
      for (int thread = 0; thread < threads; ++thread)
        EXPECT_TRUE(std::ranges::is_partitioned(range_of(order, thread, threads),
                                                [&](int task) { return task < longer; }));
      std::ranges::sort(order);
      std::vector<int> all(static_cast<std::size_t>(longer + shorter));
      std::iota(all.begin(), all.end(), 0);
      EXPECT_EQ(order, all) << threads << " threads: each task once";
    }
}

TEST(Parallel, DealsLongTasksToAllRanges) {
  EXPECT_EQ(dealt(std::vector<int>{9, 8, 7, 6, 5}, 2), (std::vector<int>{8, 6, 9, 7, 5}));
  for (const int threads : {1, 2, 3, 4, 7})
    for (const int count : {0, 1, 5, 6, 21}) {
      std::vector<int> lengths(static_cast<std::size_t>(count));
      std::iota(lengths.rbegin(), lengths.rend(), 1);
      auto tasks = dealt(lengths, threads);
      for (int thread = 0; thread < threads; ++thread) {
        const auto range = range_of(tasks, thread, threads);
        EXPECT_TRUE(std::ranges::is_sorted(range, std::ranges::greater{}));
        if (!range.empty()) {
          EXPECT_GT(range.front(), count - threads) << "one of the longest";
        }
      }
      std::ranges::sort(tasks, std::ranges::greater{});
      EXPECT_EQ(tasks, lengths) << threads << " threads: each task once";
    }
}

}  // namespace
}  // namespace paceline::engine::cpu
