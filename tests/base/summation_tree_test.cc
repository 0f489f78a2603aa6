#include "base/summation_tree.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace paceline::base {
namespace {

std::string join(const std::string& left, const std::string& right) { return "(" + left + right + ")"; }

std::vector<std::string> digits(int n) {
  std::vector<std::string> parts;
  for (int i = 0; i < n; ++i) parts.push_back(std::to_string(i));
  return parts;
}

std::string folded(int n) {
  const auto parts = digits(n);
  return tree_fold<std::string>(parts, join);
}

std::string joined_in_place(int n) {
  auto parts = digits(n);
  join_as_tree(n, [&](int into, int from) {
    parts[static_cast<std::size_t>(into)] =
        join(parts[static_cast<std::size_t>(into)], parts[static_cast<std::size_t>(from)]);
  });
  return parts[0];
}

std::string joined_one_by_one(int n) {
  TreeCounter counter;
  std::vector<std::string> kept(static_cast<std::size_t>(TreeCounter::levels(n)));
  std::string part;
  const auto join_to_part = [&](int level) { part = join(kept[static_cast<std::size_t>(level)], part); };
  for (int i = 0; i < n; ++i) {
    part = std::to_string(i);
    if (i + 1 == n) break;
    const auto level = static_cast<std::size_t>(counter.next_level());
    counter.add(join_to_part);
    kept.at(level) = part;
  }
  EXPECT_EQ(counter.count(), n - 1);
  counter.join_last(join_to_part);
  return part;
}

/// The definition itself: pair neighbours level by level, carry an odd last one up.
std::string paired_by_levels(std::vector<std::string> parts) {
  while (parts.size() > 1) {
    std::vector<std::string> next;
    for (std::size_t i = 0; i + 1 < parts.size(); i += 2) next.push_back(join(parts[i], parts[i + 1]));
    if (parts.size() % 2 == 1) next.push_back(parts.back());
    parts = next;
  }
  return parts[0];
}

/// The definition from the root: the left half is the largest power of two smaller than the count.
std::string split_from_the_root(int begin, int end) {
  if (end - begin == 1) return std::to_string(begin);
  int left = 1;
  while (2 * left < end - begin) left *= 2;
  return join(split_from_the_root(begin, begin + left), split_from_the_root(begin + left, end));
}

TEST(SummationTree, HasTheOrderWrittenOutHere) {
  const std::vector<std::string> orders = {"0",
                                           "(01)",
                                           "((01)2)",
                                           "((01)(23))",
                                           "(((01)(23))4)",
                                           "(((01)(23))(45))",
                                           "(((01)(23))((45)6))",
                                           "(((01)(23))((45)(67)))",
                                           "((((01)(23))((45)(67)))8)"};
  for (int n = 1; n <= 9; ++n) {
    const std::string& order = orders[static_cast<std::size_t>(n - 1)];
    EXPECT_EQ(folded(n), order);
    EXPECT_EQ(joined_in_place(n), order);
    EXPECT_EQ(joined_one_by_one(n), order);
  }
}

TEST(SummationTree, SplitFromTheRootIsPairingFromTheLeaves) {
  for (int n = 1; n <= 70; ++n) {
    EXPECT_EQ(folded(n), paired_by_levels(digits(n))) << n;
    EXPECT_EQ(folded(n), split_from_the_root(0, n)) << n;
  }
}

TEST(SummationTree, PartsInPlaceAreJoinedInTheSameOrder) {
  for (int n = 1; n <= 70; ++n) EXPECT_EQ(joined_in_place(n), folded(n)) << n;
}

TEST(SummationTree, PartsThatComeOneByOneAreJoinedInTheSameOrder) {
  for (int n = 1; n <= 70; ++n) EXPECT_EQ(joined_one_by_one(n), folded(n)) << n;
}

TEST(SummationTree, CounterStartsAnewAfterClear) {
  TreeCounter counter;
  for (int i = 0; i < 5; ++i) counter.add([](int) {});
  EXPECT_EQ(counter.count(), 5);
  EXPECT_EQ(counter.next_level(), 1);
  counter.clear();
  EXPECT_EQ(counter.count(), 0);
  EXPECT_EQ(counter.next_level(), 0);
  counter.join_last([](int) { ADD_FAILURE() << "nothing is kept"; });
}

TEST(SummationTree, AlignedGroupsOfAPowerOfTwoAreSubtrees) {
  for (int workers : {1, 2, 3, 4, 8})
    for (int shards_each : {1, 2, 4, 8}) {
      std::vector<std::string> sums;
      const auto all = digits(workers * shards_each);
      for (int worker = 0; worker < workers; ++worker)
        sums.push_back(
            tree_fold<std::string>(std::span(all).subspan(static_cast<std::size_t>(worker * shards_each),
                                                          static_cast<std::size_t>(shards_each)),
                                   join));
      EXPECT_EQ(tree_fold<std::string>(sums, join), folded(workers * shards_each))
          << workers << " x " << shards_each;
    }
}

TEST(SummationTree, SumOfArraysIsTheFoldOfEachElementEvenInPlace) {
  for (std::size_t n : {1u, 2u, 3u, 5u, 8u, 13u})
    for (std::size_t count : {0u, 1u, 1023u, 1024u, 2500u}) {
      std::vector<std::vector<float>> arrays(n, std::vector<float>(count));
      for (std::size_t p = 0; p < n; ++p)
        for (std::size_t i = 0; i < count; ++i) arrays[p][i] = 1.0f / static_cast<float>(1 + p * 7919 + i);
      std::vector<float> expected(count);
      for (std::size_t i = 0; i < count; ++i) {
        std::vector<float> column;
        for (auto& array : arrays) column.push_back(array[i]);
        expected[i] = tree_fold<float>(column, [](float a, float b) { return a + b; });
      }
      for (std::size_t place = 0; place < n; ++place) {
        auto copy = arrays;
        std::vector<const float*> sources;
        for (auto& array : copy) sources.push_back(array.data());
        tree_sum<float>(sources, copy[place].data(), count);
        EXPECT_EQ(copy[place], expected) << n << " parts of " << count << " into part " << place;
      }
    }
}

}  // namespace
}  // namespace paceline::base
