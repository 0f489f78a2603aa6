#include "train/gather.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "comm/make.h"

namespace paceline::train {
namespace {

/// What each rank is told whose text is texts[rank].
std::vector<int> answers(const std::vector<std::string>& texts) {
  auto communicators = comm::make_local(static_cast<int>(texts.size()));
  std::vector<int> answers(texts.size(), -1);
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < texts.size(); ++rank)
    threads.emplace_back(
        [&, rank] { answers[rank] = is_same_everywhere(*communicators[rank], texts[rank]) ? 1 : 0; });
  threads.clear();
  return answers;
}

TEST(Gather, TellsEveryRankWhetherATextIsTheSameEverywhere) {
  EXPECT_EQ(answers({"tiles"}), std::vector<int>({1}));
  EXPECT_EQ(answers({"", "", ""}), std::vector<int>({1, 1, 1}));
  EXPECT_EQ(answers({"conv1: tiles", "conv1: tiles"}), std::vector<int>({1, 1}));
  EXPECT_EQ(answers({"conv1: tiles", "conv1: tilse"}), std::vector<int>({0, 0}));
  EXPECT_EQ(answers({"conv1: tiles", "conv1: tiles", ""}), std::vector<int>({0, 0, 0}));
}

}  // namespace
}  // namespace paceline::train
