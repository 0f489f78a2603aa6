// The sum in memory that all ranks reach: which rank sums what, the bits, and what must not be written.

#include "comm/algorithms/direct.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <thread>
#include <vector>

#include "comm/values.h"

namespace paceline::comm {
namespace {

constexpr std::size_t kCountsOfDirect[] = {0, 1, 15, 16, 17, 97, 4096, 4097, 70'001};
constexpr float kGuard = -12345.0f;

TEST(DirectSegment, CoversEveryElementOnceInWholeCacheLines) {
  for (const std::size_t count : kCountsOfDirect)
    for (const int ranks : {1, 2, 3, 4, 7, 64}) {
      std::size_t end = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const Segment segment = direct_segment(count, rank, ranks);
        EXPECT_EQ(segment.begin, end) << count << " of " << ranks;
        EXPECT_LE(segment.begin, segment.end);
        EXPECT_TRUE(segment.end % 16 == 0 || segment.end == count) << "no line has two writers";
        EXPECT_LE(segment.count(), count / static_cast<std::size_t>(ranks) + 32) << "equal parts";
        end = segment.end;
      }
      EXPECT_EQ(end, count);
    }
}

/// Each rank's own thread, as in a run; its array stands between guards.
class DirectSum : public ::testing::TestWithParam<int> {
 protected:
  /// [rank] values between two guards.
  [[nodiscard]] std::vector<std::vector<float>> guarded(std::size_t count, bool filled) const {
    std::vector<std::vector<float>> arrays;
    for (int rank = 0; rank < GetParam(); ++rank) {
      std::vector<float> array(count, std::numeric_limits<float>::quiet_NaN());
      if (filled) array = values_of(rank, count);
      array.insert(array.begin(), kGuard);
      array.push_back(kGuard);
      arrays.push_back(std::move(array));
    }
    return arrays;
  }
  static std::vector<float> inside(const std::vector<float>& array) {
    EXPECT_EQ(array.front(), kGuard);
    EXPECT_EQ(array.back(), kGuard);
    return {array.begin() + 1, array.end() - 1};
  }
  void all_reduce(std::vector<std::vector<float>>& sources, std::vector<std::vector<float>>& targets,
                  std::size_t count) const {
    std::vector<const float*> from;
    std::vector<float*> to;
    for (auto& array : sources) from.push_back(array.data() + 1);
    for (auto& array : targets) to.push_back(array.data() + 1);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < GetParam(); ++rank)
      threads.emplace_back(
          [&, rank] { direct_all_reduce(from, to, direct_segment(count, rank, GetParam())); });
    for (auto& thread : threads) thread.join();
  }
};

TEST_P(DirectSum, InPlaceGivesEveryRankTheBitsOfTheTree) {
  for (const std::size_t count : kCountsOfDirect) {
    auto arrays = guarded(count, true);
    all_reduce(arrays, arrays, count);
    for (const auto& array : arrays)
      EXPECT_TRUE(same_bits(inside(array), tree_of(GetParam(), count))) << count;
  }
}

TEST_P(DirectSum, ApartLeavesWhatWasGiven) {
  for (const std::size_t count : kCountsOfDirect) {
    auto given = guarded(count, true), sums = guarded(count, false);
    all_reduce(given, sums, count);
    for (int rank = 0; rank < GetParam(); ++rank) {
      const auto r = static_cast<std::size_t>(rank);
      EXPECT_TRUE(same_bits(inside(given[r]), values_of(rank, count))) << count;
      EXPECT_TRUE(same_bits(inside(sums[r]), tree_of(GetParam(), count))) << count;
    }
  }
}

/// A rank writes its own segment alone: what the others own stays as it is.
TEST_P(DirectSum, OfOneSegmentTouchesNothingElse) {
  constexpr std::size_t kCount = 9001;
  const auto expected = tree_of(GetParam(), kCount);
  for (int owner = 0; owner < GetParam(); ++owner) {
    auto arrays = guarded(kCount, true);
    std::vector<const float*> from;
    std::vector<float*> to;
    for (auto& array : arrays) {
      from.push_back(array.data() + 1);
      to.push_back(array.data() + 1);
    }
    const Segment segment = direct_segment(kCount, owner, GetParam());
    direct_all_reduce(from, to, segment);
    for (int rank = 0; rank < GetParam(); ++rank) {
      auto want = values_of(rank, kCount);
      std::copy(expected.begin() + static_cast<std::ptrdiff_t>(segment.begin),
                expected.begin() + static_cast<std::ptrdiff_t>(segment.end),
                want.begin() + static_cast<std::ptrdiff_t>(segment.begin));
      EXPECT_TRUE(same_bits(inside(arrays[static_cast<std::size_t>(rank)]), want)) << owner << ", " << rank;
    }
  }
}

TEST_P(DirectSum, WrittenOnceGoesApartOrOverASource) {
  for (const std::size_t count : kCountsOfDirect) {
    const auto expected = tree_of(GetParam(), count);
    auto arrays = guarded(count, true);
    std::vector<const float*> from;
    for (const auto& array : arrays) from.push_back(array.data() + 1);
    const Segment segment = direct_segment(count, GetParam() - 1, GetParam());
    const std::vector<float> want(expected.begin() + static_cast<std::ptrdiff_t>(segment.begin),
                                  expected.begin() + static_cast<std::ptrdiff_t>(segment.end));
    std::vector<float> apart(segment.count() + 1, kGuard);
    direct_sum(from, segment, apart.data());
    EXPECT_EQ(apart.back(), kGuard);
    apart.pop_back();
    EXPECT_TRUE(same_bits(apart, want)) << count;
    for (int rank = 0; rank < GetParam(); ++rank)
      EXPECT_TRUE(same_bits(inside(arrays[static_cast<std::size_t>(rank)]), values_of(rank, count)));
    float* const over = arrays.back().data() + 1 + segment.begin;
    direct_sum(from, segment, over);
    EXPECT_TRUE(same_bits({over, over + segment.count()}, want)) << count;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, DirectSum, ::testing::Values(1, 2, 3, 4, 5, 8));

}  // namespace
}  // namespace paceline::comm
