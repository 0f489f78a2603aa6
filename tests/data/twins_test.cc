#include "data/twins.h"

#include <gtest/gtest.h>

#include <string>

namespace paceline::data {
namespace {

std::vector<std::uint64_t> hashes_of(const std::vector<std::string>& texts) {
  std::vector<std::uint64_t> hashes;
  for (const auto& text : texts) hashes.push_back(text.size());  // many clash
  return hashes;
}

std::vector<std::pair<std::int64_t, std::int64_t>> pairs(const std::vector<Twin>& twins) {
  std::vector<std::pair<std::int64_t, std::int64_t>> result;
  for (const auto& twin : twins) result.emplace_back(twin.first, twin.second);
  return result;
}

using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

TEST(Twins, AreFoundInsideASetAndAcrossTwo) {
  const std::vector<std::string> one{"cat", "dog", "cat", "bird", "cat"}, other{"cow", "bird", "dog", "cat"};
  const auto inside = [&](auto a, auto b) {
    return one.at(static_cast<std::size_t>(a)) == one.at(static_cast<std::size_t>(b));
  };
  const auto across = [&](auto a, auto b) {
    return one.at(static_cast<std::size_t>(a)) == other.at(static_cast<std::size_t>(b));
  };
  EXPECT_EQ(pairs(find_twins(hashes_of(one), inside)), (Pairs{{0, 2}, {0, 4}}));
  EXPECT_EQ(pairs(find_twins(hashes_of(one), inside, hashes_of(other), across)),
            (Pairs{{3, 1}, {1, 2}, {0, 3}}));
  EXPECT_TRUE(find_twins({}, inside).empty());
}

// An audit: of n copies of one picture ("not available") every pair was read from disk.
TEST(Twins, CostAComparisonEachHoweverManyAreAlike) {
  const std::vector<std::uint64_t> hashes(1000, 7);
  int comparisons = 0;
  const auto equal = [&](auto, auto) { return ++comparisons > 0; };
  EXPECT_EQ(find_twins(hashes, equal).size(), 999u);
  EXPECT_EQ(comparisons, 999);
  comparisons = 0;
  EXPECT_EQ(find_twins(hashes, equal, hashes, equal).size(), 1000u);
  EXPECT_EQ(comparisons, 1999);
}

}  // namespace
}  // namespace paceline::data
