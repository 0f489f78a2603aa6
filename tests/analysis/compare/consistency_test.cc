#include "analysis/compare/consistency.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/compare/cell.h"
#include "golden/records.h"

namespace paceline::analysis {
namespace {

using golden::make_record;
using golden::make_training;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string all(const measure::Record& record) {
  std::string text;
  for (const auto& finding : check(record)) text += (finding.is_error ? "E " : "W ") + finding.text + "\n";
  return text;
}

TEST(Consistency, FindsNothingInASoundRecord) {
  EXPECT_THAT(check(make_record({})), IsEmpty()) << all(make_record({}));
  EXPECT_THAT(check(make_record({.workers = 4})), IsEmpty());
  EXPECT_THAT(check(make_training({})), IsEmpty()) << all(make_training({}));
}

TEST(Consistency, NamesBatchesThatDoNotMultiply) {
  auto record = make_record({.workers = 2});
  record.global_batch = 128;
  EXPECT_THAT(all(record), HasSubstr("2 workers of local batch 128 do not make a global batch of 128"));
}

// One step more than whole global batches there are: the work of fewer workers, too close to the truth to
// see.
TEST(Consistency, NamesStepsThatTheDataHasNoImagesFor) {
  auto record = make_record({.workers = 2, .local_batch = 15000});
  ASSERT_EQ(record.data.steps_per_epoch, 1);
  record.data.steps_per_epoch = 2;
  EXPECT_THAT(all(record), HasSubstr("E 2 steps an epoch of a global batch of 30000 over 50000 samples"));
}

TEST(Consistency, NamesAWindowOfOtherImagesOrAnotherTime) {
  auto record = make_record({.workers = 2});
  record.window.samples /= 2;
  EXPECT_THAT(all(record), HasSubstr("E 8 steps of a global batch of 256 are not the 1024 images"));
  record = make_record({.workers = 2});
  record.window.wall_s *= 1.1;
  EXPECT_THAT(all(record), HasSubstr("E the window took 10.76 s, but its longest rank 9.784 s"));
}

TEST(Consistency, NamesTimeThatIsLessThanNone) {
  auto record = make_record({});
  record.ranks[0].phases[static_cast<std::size_t>(measure::Phase::forward)] -= 20;
  record.ranks[0].phases[static_cast<std::size_t>(measure::Phase::backward)] += 20;
  EXPECT_THAT(all(record), HasSubstr("s of forward"));
}

// 400 GB/s out of 0.4, without a word.
TEST(Consistency, NamesGradientsThatAreNotThoseOfTheBuckets) {
  auto record = make_record({.workers = 2, .communication = 0.05, .transfer = 0.01});
  record.communication.gradient_bytes *= 1000;
  EXPECT_THAT(all(record), HasSubstr("E a step reduces 44695848000 bytes of gradients, but its buckets hold "
                                     "44695848"));
}

/// Queued steps of a device: eight floats of votes behind the gradients, which records say since
/// `vote_bytes`.
TEST(Consistency, TakesVotesInTheBucketsAsWhatTheyAreAndNothingElse) {
  struct Case {
    const char* device;
    std::int64_t more;  ///< bytes in the last bucket beside the gradients
    std::optional<std::int64_t> vote_bytes;
    bool is_sound;
  };
  for (const auto& [device, more, vote_bytes, is_sound] : {Case{"cuda", 32, 32, true},
                                                           {"cuda:1", 32, 32, true},
                                                           {"cuda-on-host", 32, 32, true},
                                                           {"cuda", 0, 32, false},
                                                           {"cuda", 16, 32, false},
                                                           {"cuda", 64, 32, false},
                                                           {"cuda", 64, 64, false},
                                                           {"cpu", 32, 32, false},
                                                           {"cuda", 32, {}, true},  // older
                                                           {"cuda-on-host", 32, {}, true},
                                                           {"cuda", 0, {}, true},  // waited for
                                                           {"cuda", 16, {}, false},
                                                           {"cuda", 64, {}, false},
                                                           {"cuda", -32, {}, false},
                                                           {"cpu", 32, {}, false},
                                                           {"reference", 32, {}, false}})
    for (const int workers : {1, 2}) {
      auto record = make_record({.workers = workers, .communication = 0.05, .transfer = 0.01});
      if (workers == 1) record.buckets.resize(1), record.buckets[0].bytes = 4 * golden::kParameters;
      record.communication.gradient_bytes = 4 * golden::kParameters;
      record.device = device;
      record.buckets.back().bytes += more;
      record.communication.vote_bytes = vote_bytes;
      EXPECT_EQ(all(record).empty(), is_sound) << device << " " << more << ": " << all(record);
    }
  auto record = make_record({.workers = 2, .communication = 0.05, .transfer = 0.01});
  record.device = "cuda";
  record.buckets.back().bytes += 64;
  record.communication.vote_bytes = 32;
  EXPECT_THAT(all(record), HasSubstr("E a step reduces 44695848 bytes of gradients and 32 of votes, but its "
                                     "buckets hold 44695912"));
}

TEST(Consistency, NamesCommunicationThatIsNotItsParts) {
  auto record = make_record({.workers = 2, .communication = 0.05, .transfer = 0.01});
  record.ranks[1].communication_s = 2;
  EXPECT_THAT(all(record),
              HasSubstr("E rank 1: 0.08 s of transfer and 0.32 s of waiting for a later rank are "
                        "not its 2 s of communication"));
  record.ranks[1].late_peer_s = 40;
  record.ranks[1].communication_s = 40.08;
  EXPECT_THAT(all(record), HasSubstr("E rank 1: 40.08 s of communication in a wall time of 9.784 s"));
}

// All steps halved, ledger and wall time kept: "2.98 times as fast, efficiency 149 %", without a word.
TEST(Consistency, NamesStepsThatTheLedgerContradicts) {
  auto record = make_record({.workers = 2});
  for (auto& rank : record.ranks)
    for (double& step : rank.step_s) step /= 2;
  EXPECT_THAT(all(record),
              HasSubstr("E rank 0: its steps add up to 4.892 s, but the ledger has 9.76 s of work "
                        "and waiting in them"));
  EXPECT_THAT(all(record), HasSubstr("E rank 1: "));
}

// A training resumed at its end has a window of a microsecond, and its accuracy counts all the same.
TEST(Consistency, AsksNothingOfAWindowWithoutSteps) {
  auto record = make_record({});
  record.window.steps = 0;
  for (auto& rank : record.ranks) {
    rank.step_s.clear();
    rank.phases = {};
    rank.wall_s = 1.2e-6;
  }
  EXPECT_EQ(contradiction(record), std::nullopt);
}

TEST(Consistency, NamesAStepOfOneRankThatTheWindowHasNoRoomFor) {
  auto record = make_record({.workers = 2});
  record.ranks[1].step_s[3] *= 1.2;
  EXPECT_THAT(all(record),
              HasSubstr("E rank 1: its steps add up to 10.03 s, but the window left them 9.784 s"));
  EXPECT_THAT(all(record), Not(HasSubstr("rank 0")));
}

TEST(Consistency, LeavesRoomForWhatLiesBetweenSteps) {
  auto record = make_training({});
  auto& rank = record.ranks[0];
  for (const auto phase : {measure::Phase::evaluation, measure::Phase::checkpoint, measure::Phase::other}) {
    rank.phases[static_cast<std::size_t>(phase)] += 20;
    rank.wall_s += 20;
  }
  record.window.wall_s = rank.wall_s;
  EXPECT_THAT(check(record), IsEmpty()) << all(record);
  rank.step_s[0] += 21;  // "other" may lie in a step, evaluation and checkpoint never do
  EXPECT_THAT(all(record),
              HasSubstr("rank 0: its steps add up to 30.78 s, but the window left them 29.78 s"));
}

TEST(Consistency, NamesEpochsThatTheirStepsContradict) {
  auto record = make_training({});
  record.epochs[1].steps = 5;  // the window is of 8 steps: these two epochs, and a resume behind the first
  record.epochs[2].steps = 3;
  record.epochs[1].seconds = 6;
  record.epochs[2].seconds = record.window.wall_s - 6;
  EXPECT_THAT(check(record), IsEmpty()) << all(record);
  record.epochs[2].seconds /= 2;
  EXPECT_THAT(all(record), HasSubstr("E the epochs took 7.892 s, but their steps add up to 9.784 s"));
  record.epochs[1].steps = 6;  // of it one step was made before the resume: nothing can be said
  EXPECT_THAT(check(record), IsEmpty()) << all(record);
}

TEST(Consistency, NamesStepsThatAreMissing) {
  auto record = make_record({.workers = 2});
  for (auto& rank : record.ranks) rank.step_s.resize(1);
  EXPECT_THAT(all(record), HasSubstr("E rank 0: the window has 8 steps, but step_s lists 1"));
}

/// A long training lists one of 4 steps, and the sum of all of them beside.
TEST(Consistency, KnowsWindowsInWhichNotEachStepHasATime) {
  auto record = make_record({.workers = 2});
  record.window.timed_of = 4;
  for (auto& rank : record.ranks) {
    rank.steps_s = seconds_of_steps(rank);
    rank.step_s.resize(2);
  }
  EXPECT_THAT(check(record), IsEmpty()) << all(record);
  record.ranks[1].step_s.resize(1);
  EXPECT_THAT(
      all(record),
      HasSubstr("E rank 1: the window has 8 steps, of which one in 4 has a time, but step_s lists 1"));
  record.ranks[1].step_s.resize(2, 1.2);
  *record.ranks[1].steps_s *= 1.2;
  EXPECT_THAT(all(record), HasSubstr("E rank 1: its steps add up to 11.74 s"));
  record.ranks[1].step_s[0] = 20;
  EXPECT_THAT(all(record), HasSubstr("E rank 1: some of its steps add up to 21.2 s, and all to 11.74 s"));
  for (const std::int64_t hostile : {0, -3}) {
    record.window.timed_of = hostile;
    EXPECT_THAT(all(record), HasSubstr("but step_s lists 2"));
  }
  record = make_record({});
  record.ranks[0].steps_s = seconds_of_steps(record.ranks[0]);
  EXPECT_THAT(all(record), HasSubstr("E rank 0: steps_s is 9.784 s, but each step has a time of its own"));
}

TEST(Consistency, NamesRanksThatAreMissing) {
  auto record = make_record({.workers = 2});
  record.ranks.pop_back();
  EXPECT_THAT(all(record), HasSubstr("E workers is 2, but ranks lists 1"));
}

TEST(Consistency, NamesStepsThatTookNoTime) {
  auto record = make_record({});
  record.ranks[0].wall_s = 0;
  EXPECT_THAT(all(record), HasSubstr("E rank 0: 8 steps were timed in a wall time of 0 s"));
}

TEST(Consistency, NamesAnAccuracyThatIsNoCountOverTheTestSet) {
  auto record = make_training({});
  record.epochs.back().test_accuracy = 0.70123456;
  EXPECT_THAT(all(record), HasSubstr("not a whole number of 10000 images"));
}

TEST(Consistency, NamesOtherProgramsThatWereAtWorkWhileItMeasured) {
  std::vector<measure::Record> records{make_record({}), make_record({.workers = 2}),
                                       make_record({.workers = 4})};
  records[0].window.others_cores = 0.02;
  records[0].environment.load_before = 1.9;  // of a build just before: no reason to doubt
  records[2].environment.load_before = 60;
  records[2].window.others_cores.reset();
  EXPECT_FALSE(busy(records).has_value());
  records[1].window.others_cores = 0.7;
  ASSERT_TRUE(busy(records).has_value());
  EXPECT_THAT(busy(records)->text,
              HasSubstr("in 1 of 3 measured windows, and of 1 it is not known (up to 0.7 of 2 cores"));
  records[1].environment.cores = 1;  // of a process that was bound to one: the others ran beside it too
  records[1].window.others_cores = 1.2;
  EXPECT_THAT(busy(records)->text, HasSubstr("(up to 1.2 cores"));
}

TEST(Consistency, NamesPausedWindows) {
  std::vector<measure::Record> records{make_record({}), make_record({.workers = 2}),
                                       make_record({.workers = 4})};
  for (auto& record : records) record.window.others_cores = 0.02;
  EXPECT_FALSE(paused(records).has_value());
  records[0].window.paused_s = 0.4;
  records[1].window.paused_s = 4;
  records[1].window.others_cores.reset();  // shorter than a second, but for the pause
  ASSERT_TRUE(paused(records).has_value());
  EXPECT_THAT(paused(records)->text, HasSubstr("2 of 3 windows stood still, for up to 4.0 s"));
  EXPECT_FALSE(busy(records).has_value()) << "nobody else was at work";
}

TEST(Consistency, NamesWhoMadeHalfOfTheLoad) {
  std::vector<measure::Record> records{make_record({})};
  auto& window = records[0].window;
  window.others_cores = 1.0;
  for (const double cores : {0.04, 0.49, std::nan("")}) {
    window.others = {{.name = "cc1plus", .cores = cores}};
    EXPECT_THAT(busy(records)->text, testing::Not(HasSubstr("cc1plus"))) << cores;
  }
  window.others = {{.name = "ninja", .cores = 0.8}, {.name = "cc1plus", .cores = 0.1}};
  EXPECT_THAT(busy(records)->text, HasSubstr(", most of it by ninja (0.8 cores))"));
}

TEST(Consistency, NamesASlowLoaderBehindAFullQueue) {
  auto record = make_record({});
  record.window.warmup_steps = 1;
  record.ranks[0].loader_threads = 1;
  record.ranks[0].loader_prepare_s = 0.2 * record.ranks[0].wall_s;
  EXPECT_THAT(check(record), IsEmpty()) << all(record);
  record.ranks[0].loader_prepare_s = 0.9 * record.ranks[0].wall_s;
  EXPECT_THAT(all(record), HasSubstr("give --warmup-steps 3 or more"));
  record.window.warmup_steps = 3;
  EXPECT_THAT(check(record), IsEmpty()) << all(record);
}

TEST(Consistency, NamesAPeakFarFromThePlan) {
  auto record = make_record({});
  record.memory.peak_bytes = record.memory.plan_bytes * 5 / 4;
  EXPECT_THAT(all(record), HasSubstr("+25 % off the plan"));
}

TEST(Consistency, FindsNothingWrongWithWhatWasNotBegun) {
  auto record = make_record({.local_batch = 60000});
  EXPECT_FALSE(check(record).empty());
  record.status = "interrupted";
  record.ranks.clear();
  EXPECT_TRUE(check(record).empty());
}

}  // namespace
}  // namespace paceline::analysis
