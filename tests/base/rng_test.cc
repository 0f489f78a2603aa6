#include "base/rng.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace paceline::base {
namespace {

TEST(Philox, GivesTheKnownAnswersOfRandom123) {
  // kat_vectors of the Random123 distribution, "philox4x32 10".
  struct Row {
    std::array<std::uint32_t, 4> counter;
    std::array<std::uint32_t, 2> key;
    std::array<std::uint32_t, 4> words;
  };
  for (const auto& [counter, key, words] : std::vector<Row>{
           {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
           {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
            {0xffffffff, 0xffffffff},
            {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
           {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
            {0xa4093822, 0x299f31d0},
            {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
       })
    EXPECT_EQ(philox(counter, key), words);
}

TEST(Rng, IsAPureFunctionOfItsCoordinates) {
  Rng a(42, Purpose::augment, 3, 9), b(42, Purpose::augment, 3, 9);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.next_u32(), b.next_u32());
}

TEST(Rng, EveryCoordinateChangesTheStream) {
  std::set<std::uint32_t> first;
  int streams = 0;
  const auto add = [&](std::uint64_t seed, Purpose purpose, std::uint64_t a, std::uint64_t b) {
    first.insert(Rng(seed, purpose, a, b).next_u32());
    ++streams;
  };
  // Seeds next to one another, and seeds and epochs whose sums agree: seed + epoch would repeat a stream.
  for (std::uint64_t seed : {0ull, 1ull, 2ull, 1ull << 32, ~0ull})
    for (auto purpose :
         {Purpose::shuffle, Purpose::augment, Purpose::dropout, Purpose::weight, Purpose::synthetic})
      for (std::uint64_t a : {0ull, 1ull, 2ull, 1ull << 32})
        for (std::uint64_t b : {0ull, 1ull, 77ull}) add(seed, purpose, a, b);
  EXPECT_EQ(first.size(), static_cast<std::size_t>(streams));
}

TEST(Rng, BelowStaysBelowAndIsEven) {
  Rng rng(1, Purpose::test);
  EXPECT_EQ(rng.below(1), 0u);
  constexpr int kBins = 10, kDraws = 100000;
  std::vector<int> count(kBins);
  for (int i = 0; i < kDraws; ++i) ++count.at(rng.below(kBins));
  double chi2 = 0;
  for (const int n : count) chi2 += std::pow(n - kDraws / kBins, 2) / (kDraws / kBins);
  EXPECT_LT(chi2, 27.9);  // chi-square, 9 degrees of freedom, p = 0.001
}

TEST(Rng, UniformFillsTheHalfOpenUnitInterval) {
  Rng rng(2, Purpose::test);
  double sum = 0, sum64 = 0, least = 1, most = 0;
  constexpr int kDraws = 200000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = rng.uniform(), y = rng.uniform_f64();
    ASSERT_TRUE(x >= 0 && x < 1 && y >= 0 && y < 1);
    sum += x;
    sum64 += y;
    least = std::min(least, x);
    most = std::max(most, x);
  }
  const double four_errors = 4 / std::sqrt(12.0 * kDraws);
  EXPECT_NEAR(sum / kDraws, 0.5, four_errors);
  EXPECT_NEAR(sum64 / kDraws, 0.5, four_errors);
  EXPECT_LT(least, 1e-4);
  EXPECT_GT(most, 1 - 1e-4);
}

TEST(Rng, NormalHasTheMomentsOfTheNormal) {
  Rng rng(3, Purpose::test);
  constexpr int kDraws = 200000;
  double sum = 0, square = 0, fourth = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = rng.normal();
    ASSERT_TRUE(std::isfinite(x));
    sum += x;
    square += x * x;
    fourth += x * x * x * x;
  }
  EXPECT_NEAR(sum / kDraws, 0, 4 / std::sqrt(kDraws));
  EXPECT_NEAR(square / kDraws, 1, 4 * std::sqrt(2.0 / kDraws));
  EXPECT_NEAR(fourth / kDraws, 3, 4 * std::sqrt(96.0 / kDraws));
}

}  // namespace
}  // namespace paceline::base
