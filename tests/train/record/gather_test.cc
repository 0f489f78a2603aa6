#include "train/record/gather.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "comm/make.h"
#include "measure/record_fields.h"
#include "measure/record_file.h"

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

/// A record with this rank alone, as text.
std::string text_of(const measure::RankRecord& rank) {
  measure::Record record;
  record.ranks = {rank};
  return measure::to_json(record);
}

TEST(RankRecord, LosesNothingOnItsWay) {
  measure::RankRecord full{.rank = 1,
                           .host = "b",
                           .cores = {2, 3},
                           .wall_s = 2.1,
                           .communication_s = 0.3,
                           .transfer_s = 0.1,
                           .late_peer_s = 0.2,
                           .step_s = {1, 1.1},
                           .own_s = std::vector<double>{0.5, 0.25},
                           .steps_s = 9.5,
                           .loader_prepare_s = 0.7,
                           .loader_threads = 3,
                           .loader_processor_s = 0.6,
                           .loader_waits = 4,
                           .loader_ready = 1.5,
                           .loader_queue = 8,
                           .process = 1,
                           .peak_bytes = std::int64_t{5'000'000'000},
                           .bytes_sent = 7,
                           .bytes_received = 0};
  for (std::size_t phase = 0; phase < measure::kPhases; ++phase)
    full.phases[phase] = 0.1 * static_cast<double>(phase);
  const measure::RankRecord sparse{.wall_s = 2, .step_s = {1}};  // ranks may differ in what they have
  for (const auto& rank : {full, sparse})
    EXPECT_EQ(text_of(base::from_bytes<measure::RankRecord>(base::to_bytes(rank))), text_of(rank));
}

}  // namespace
}  // namespace paceline::train
