#include "train/record/gather.h"

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

TEST(Gather, BringsTextsOfAnyLengthToEveryRank) {
  for (const auto& texts : {std::vector<std::string>{"a"}, {"", ""}, {"one", "", "three of them", "x"}}) {
    auto communicators = comm::make_local(static_cast<int>(texts.size()));
    std::vector<std::vector<std::string>> all(texts.size());
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < texts.size(); ++rank)
      threads.emplace_back([&, rank] { all[rank] = gather_texts(*communicators[rank], texts[rank]); });
    threads.clear();
    for (const auto& found : all) EXPECT_EQ(found, texts);
  }
}

TEST(Gather, BringsProcessMemoryAndBytesOfEveryRank) {
  auto communicators = comm::make_local(2);
  std::vector<std::vector<measure::RankRecord>> all(2);
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      measure::RankRecord mine{.host = "b",
                               .wall_s = 2,
                               .step_s = {1, 1},
                               .own_s = std::vector<double>{0.5, 0.25 + static_cast<double>(rank)}};
      if (rank == 1) {
        mine.process = 1;
        mine.peak_bytes = std::int64_t{5'000'000'000};
        mine.bytes_sent = 7;
        mine.bytes_received = 0;
        mine.steps_s = 9.5;
      }
      all[rank] = gather_ranks(*communicators[rank], mine);
    });
  threads.clear();
  for (const auto& ranks : all) {
    ASSERT_EQ(ranks.size(), 2u);
    EXPECT_EQ(ranks[1].step_s, std::vector<double>({1, 1}));
    EXPECT_EQ(ranks[1].own_s, std::vector<double>({0.5, 1.25}));
    EXPECT_EQ(ranks[0].process, std::nullopt);
    EXPECT_EQ(ranks[0].peak_bytes, std::nullopt);
    EXPECT_EQ(ranks[0].bytes_sent, std::nullopt);
    EXPECT_EQ(ranks[1].host, "b");
    EXPECT_EQ(ranks[1].process, 1);
    EXPECT_EQ(ranks[1].peak_bytes, 5'000'000'000);
    EXPECT_EQ(ranks[1].bytes_sent, 7);
    EXPECT_EQ(ranks[1].bytes_received, 0);
    EXPECT_EQ(ranks[0].steps_s, std::nullopt);
    EXPECT_EQ(ranks[1].steps_s, 9.5);
  }
}

}  // namespace
}  // namespace paceline::train
