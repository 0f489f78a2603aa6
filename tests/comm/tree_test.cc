#include "comm/tree.h"

#include <gtest/gtest.h>

#include <string>

namespace paceline::comm {
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

TEST(Tree, HasTheDocumentedShape) {
  EXPECT_EQ(folded(1), "0");
  EXPECT_EQ(folded(2), "(01)");
  EXPECT_EQ(folded(3), "((01)2)");
  EXPECT_EQ(folded(4), "((01)(23))");
  EXPECT_EQ(folded(5), "(((01)(23))4)");
  EXPECT_EQ(folded(7), "(((01)(23))((45)6))");
}

TEST(Tree, SplitFromTheTopIsPairingFromTheBottom) {
  for (int n = 1; n <= 70; ++n) EXPECT_EQ(folded(n), paired_by_levels(digits(n))) << n;
}

TEST(Tree, PartsThatComeOneByOneAreJoinedInTheSameOrder) {
  for (int n = 1; n <= 70; ++n) {
    TreeSum<std::string> sum;
    const auto combine = [](std::string& into, const std::string& right) { into = join(into, right); };
    for (const auto& part : digits(n)) sum.add(part, combine);
    EXPECT_EQ(sum.added(), static_cast<std::uint64_t>(n));
    EXPECT_EQ(sum.take(combine), folded(n)) << n;
    EXPECT_EQ(sum.added(), 0u);
  }
}

TEST(Tree, AlignedGroupsOfAPowerOfTwoAreSubtrees) {
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

TEST(Tree, SumOfArraysIsTheFoldOfEachElementEvenInPlace) {
  for (std::size_t n : {1u, 2u, 3u, 5u, 8u, 13u})
    for (std::size_t count : {0u, 1u, 1023u, 1024u, 2500u}) {
      std::vector<std::vector<float>> arrays(n, std::vector<float>(count));
      for (std::size_t p = 0; p < n; ++p)
        for (std::size_t i = 0; i < count; ++i) arrays[p][i] = 1.0f / static_cast<float>(1 + p * 7919 + i);
      std::vector<const float*> parts;
      for (auto& array : arrays) parts.push_back(array.data());
      std::vector<float> expected(count);
      for (std::size_t i = 0; i < count; ++i) {
        std::vector<float> column;
        for (auto& array : arrays) column.push_back(array[i]);
        expected[i] = tree_fold<float>(column, [](float a, float b) { return a + b; });
      }
      for (std::size_t place : {std::size_t{0}, n - 1}) {
        auto copy = arrays;
        std::vector<const float*> sources;
        for (auto& array : copy) sources.push_back(array.data());
        tree_sum<float>(sources, copy[place].data(), count);
        EXPECT_EQ(copy[place], expected) << n << " parts of " << count;
      }
    }
}

}  // namespace
}  // namespace paceline::comm
