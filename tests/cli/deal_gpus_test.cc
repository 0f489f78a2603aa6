#include "cli/deal_gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace paceline::cli {
namespace {

using testing::ElementsAre;

std::vector<int> deal(const std::vector<int>& processes, const std::vector<int>& gpus) {
  return deal_gpus(processes, gpus);
}

TEST(DealGpus, EachTakesOneNearItsCores) {
  // srun's cores in blocks, and a board whose first two GPUs hang on the second socket.
  EXPECT_THAT(deal({0, 0, 1, 1}, {1, 1, 0, 0}), ElementsAre(2, 3, 0, 1));
  EXPECT_THAT(deal({0, 1, 0, 1}, {0, 0, 1, 1}), ElementsAre(0, 2, 1, 3));
}

TEST(DealGpus, NobodyIsMovedForNothing) {
  EXPECT_THAT(deal({0, 0, 1, 1}, {0, 0, 1, 1}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(deal({0, 0}, {0, 0, 1, 1}), ElementsAre(0, 1));
  EXPECT_THAT(deal({-1, -1, -1}, {0, 1, 1}), ElementsAre(0, 1, 2)) << "not bound";
  EXPECT_THAT(deal({0, 1}, {}), ElementsAre(0, 1)) << "nobody knows where GPUs are";
  EXPECT_THAT(deal({}, {0}), ElementsAre());
}

TEST(DealGpus, WhoFindsNoneGetsWhatIsLeft) {
  EXPECT_THAT(deal({0, 0, 0}, {1, 0, 1}), ElementsAre(0, 1, 2)) << "as many are near in any order";
  EXPECT_THAT(deal({0, 0, 1}, {1, 0, 1}), ElementsAre(1, 0, 2));
  EXPECT_THAT(deal({1, -1}, {1, 1}), ElementsAre(0, 1));
}

TEST(DealGpus, GivesEachPlaceOnceWhateverIsKnown) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    unsigned state = seed * 2654435761U + 1;
    const auto pick = [&](unsigned of) {
      return static_cast<int>((state = state * 1664525U + 1013904223U) >> 16) % static_cast<int>(of);
    };
    std::vector<int> processes(static_cast<std::size_t>(1 + pick(8))),
        gpus(static_cast<std::size_t>(pick(9)));
    for (int& node : processes) node = pick(4) - 1;
    for (int& node : gpus) node = pick(4) - 1;
    auto places = deal(processes, gpus);
    std::sort(places.begin(), places.end());
    for (std::size_t i = 0; i < places.size(); ++i)
      ASSERT_EQ(places[i], static_cast<int>(i)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace paceline::cli
