#include "train/record/timeline.h"

#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "train/fixture.h"

namespace paceline::train {
namespace {

using measure::Phase;
using measure::TimelineSpan;

class TimelineOfATraining : public TrainingTest {};

TEST_F(TimelineOfATraining, HoldsEverySecondOfTheLedgerOfEveryRank) {
  auto options = small();
  options.workers = 2;
  options.threads = 1;
  options.steps = 8;
  options.timeline = directory_ / "timeline.json";
  const auto record = train(options);
  const auto file = nlohmann::json::parse(base::read_file(options.timeline));
  std::map<std::pair<int, std::string>, double> seconds;  // [rank, name]
  for (const auto& event : file.at("traceEvents"))
    if (event.at("ph") == "X")
      seconds[{event.at("pid"), event.at("name")}] += 1e-6 * event.at("dur").get<double>();
  for (int rank = 0; rank < 2; ++rank) {
    const auto& phases = record.ranks[static_cast<std::size_t>(rank)].phases;
    const auto booked = [&](Phase phase) { return phases[static_cast<std::size_t>(phase)]; };
    for (const auto phase : {Phase::data_wait, Phase::forward, Phase::backward, Phase::update,
                             Phase::exposed_transfer, Phase::exposed_wait})
      EXPECT_NEAR((seconds[{rank, std::string(name(phase))}]), booked(phase), 1e-4) << name(phase);
    EXPECT_GT((seconds[{rank, "bucket 0"}]), 0);
  }
  EXPECT_THAT(record.notes, ::testing::Contains(::testing::HasSubstr("to hand over a step's gradients")));
}

TEST_F(TimelineOfATraining, OfOneWorkerHasNoCollectives) {
  auto options = small();
  options.steps = 3;
  options.timeline = directory_ / "timeline.json";
  (void)train(options);
  const auto text = std::string(base::read_file(options.timeline));
  EXPECT_THAT(text, ::testing::HasSubstr("\"name\":\"forward\""));
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("bucket")));
}

TEST(ClockOffset, IsNoneBetweenThreadsAndKnowsItsError) {
  auto communicators = comm::make_local(3);
  std::vector<ClockOffset> offsets(3);
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < 3; ++rank)
      threads.emplace_back([&, rank] { offsets[rank] = clock_offset(*communicators[rank]); });
  }
  EXPECT_EQ(offsets[0].seconds, 0);
  for (const auto& offset : offsets) {
    EXPECT_LE(std::abs(offset.seconds), offset.error_s);  // the truth, 0, lies within
    EXPECT_LT(offset.error_s, 0.05);
  }
}

}  // namespace
}  // namespace paceline::train
