#include "train/checkpoint/earlier_epochs.h"

#include <gmock/gmock.h>

#include "train/checkpoint/kept_record.h"
#include "train/fixture.h"
#include "train/given/schedule.h"

namespace paceline::train {
namespace {

using ::testing::HasSubstr;

/// A training of 4 workers that was lost after update 31; its last checkpoint is that of update 24.
class EarlierRun : public TrainingTest {
 protected:
  EarlierRun() {
    options_.out = directory_;
    record_.status = "interrupted";
    record_.reason = kNoReportedError;
    record_.workers = 4;
    record_.global_batch = 48;
    record_.epochs = {{.epoch = 1, .updates = 24}};
  }
  void write(const measure::Record& record, const char* name) {
    measure::write_record(directory_ / name, record);
  }
  [[nodiscard]] measure::Record lost_rank_0() const {
    auto words = record_;
    words.status = "failed";
    words.reason = "rank 0 on host a (last in backward of step 32) is lost";
    words.updates_done = 31;
    words.loss = {.known_at_s = 1000, .detection_s = 0.5};
    return words;
  }
  [[nodiscard]] Earlier read() const { return read_earlier(options_, resume_, 48); }

  Options options_;
  std::optional<ResumePoint> resume_ = ResumePoint{.path = directory_ / "checkpoint-00000024.safetensors",
                                                   .standing = {.counters = {.update = 24}},
                                                   .notes = {}};
  measure::Record record_;
};

TEST_F(EarlierRun, WhoseFirstProcessWasLostIsToldByTheLastWordsOfTheOthers) {
  write(record_, "record.json");
  write_lost_rank_0(directory_, lost_rank_0());
  options_.lost = {.how = "mpirun ended with 137", .loss = {.known_at_s = 1006, .detection_s = 6}};
  const auto earlier = read();
  ASSERT_EQ(earlier.restarts.size(), 1u);
  const auto& lost = earlier.restarts[0];
  EXPECT_THAT(lost.reason, HasSubstr("rank 0 on host a (last in backward of step 32)"));
  EXPECT_EQ(lost.workers, 4);
  EXPECT_EQ(lost.detection_s, 0.5);
  EXPECT_EQ(lost.lost_updates, 7);
  EXPECT_EQ(lost.lost_samples, 7 * 48);
  EXPECT_EQ(earlier.lost_at_s, 1000) << "when the others knew it, not when the launcher was through";
  EXPECT_EQ(earlier.epochs.size(), 1u);
}

TEST_F(EarlierRun, OfWhichNobodyWasLeftIsToldByWhatTheLauncherSaw) {
  write(record_, "record.json");
  options_.lost = {.how = "mpirun ended with 137", .loss = {.known_at_s = 1006, .detection_s = 0.7}};
  const auto earlier = read();
  ASSERT_EQ(earlier.restarts.size(), 1u);
  EXPECT_EQ(earlier.restarts[0].reason, "mpirun ended with 137");
  EXPECT_EQ(earlier.restarts[0].detection_s, 0.7);
  EXPECT_EQ(earlier.restarts[0].workers, 4);
  EXPECT_FALSE(earlier.restarts[0].lost_samples.has_value()) << "nobody counted them";
  EXPECT_EQ(earlier.lost_at_s, 1006);
}

TEST_F(EarlierRun, ThatEndedWithoutAWordHasCountedItsUpdates) {
  write(record_, "record.json");
  {
    UpdateCount count(directory_);
    count.set(1000);
    count.set(29);
  }
  EXPECT_EQ(counted_updates(directory_), 29);
  for (const bool launched : {false, true}) {
    if (launched) options_.lost = {.how = "mpirun ended with 137", .loss = {.known_at_s = 1006}};
    const auto earlier = read();
    ASSERT_EQ(earlier.restarts.size(), 1u);
    EXPECT_EQ(earlier.restarts[0].lost_updates, 5);
    EXPECT_EQ(earlier.restarts[0].lost_samples, 5 * 48);
  }
  resume_.reset();  // before its first checkpoint, and before it had a record
  std::filesystem::remove(directory_ / "record.json");
  EXPECT_EQ(read().restarts.at(0).lost_samples, 29 * 48);
}

TEST_F(EarlierRun, LeavesItsCountOnlyWhereItLeavesNoRecord) {
  auto options = small("out");
  std::optional<std::int64_t> meanwhile;
  Progress progress;
  progress.step = [&](std::int64_t step, std::int64_t, double, double) {
    if (step == 7) meanwhile = counted_updates(options.out);
  };
  (void)train(options, {}, progress);
  EXPECT_EQ(meanwhile, 7);
  EXPECT_FALSE(counted_updates(options.out).has_value());
}

TEST_F(EarlierRun, BeforeItsFirstCheckpointIsToldToo) {
  resume_.reset();
  write_lost_rank_0(directory_, lost_rank_0());
  EXPECT_TRUE(read().restarts.empty()) << "a new training, not started again";
  options_.lost = {.how = "mpirun ended with 137", .loss = {.known_at_s = 1006}};
  const auto earlier = read();
  ASSERT_EQ(earlier.restarts.size(), 1u);
  EXPECT_EQ(earlier.restarts[0].lost_updates, 31) << "all of them";
}

TEST_F(EarlierRun, ThatSaidItselfHowItEndedNeedsNobodyElse) {
  write_lost_rank_0(directory_, lost_rank_0());  // of an earlier one still
  auto own = record_;
  own.status = "failed";
  own.reason = "rank 2 on host b is lost";
  own.loss = {.known_at_s = 2000, .detection_s = 0.1};
  write(own, "record.json");
  EXPECT_EQ(read().restarts.at(0).reason, "rank 2 on host b is lost");
  own.status = "complete";
  write(own, "record.json");
  EXPECT_TRUE(read().restarts.empty());
}

TEST_F(EarlierRun, IsForgottenOnceItsLossIsInTheNextRecord) {
  auto options = small("out");
  options.workers = 2;
  (void)train(options);
  write_lost_rank_0(options.out, lost_rank_0());
  options.resume = options.out;
  options.steps = 12;
  const auto record = train(options);
  EXPECT_FALSE(std::filesystem::exists(options.out / kLostRank0));
  EXPECT_FALSE(record.restarts.has_value()) << "the run before was complete";
}

TEST_F(EarlierRun, LeavesNoLastWordsWhereItsDirectoryIsNot) {
  write_lost_rank_0(directory_ / "on another host", lost_rank_0());
  EXPECT_FALSE(std::filesystem::exists(directory_ / "on another host"));
}

}  // namespace
}  // namespace paceline::train
