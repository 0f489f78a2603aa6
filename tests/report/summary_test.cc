#include "report/build.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "golden/records.h"
#include "report/study_records.h"

namespace paceline::report {
namespace {

using golden::make_record;
using golden::Run;
using measure::Record;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(Summary, NeverAdvisesWorkersWithoutACoreEach) {
  std::vector<Record> records;
  for (const int workers : {1, 2, 4})
    records.push_back(make_record({.scaling = "weak",
                                   .workers = workers,
                                   .local_batch = 32,
                                   .forward = workers == 4 ? 0.11 : 0.1,
                                   .oversubscribed = workers == 4}));
  EXPECT_THAT(
      to_markdown(build(records)),
      testing::HasSubstr("the fewest within 5 % of the best throughput: batch 32: 2 workers (2 cores), "));
}

TEST(Summary, SaysWhereTheLostEfficiencyWent) {
  // 200 steps of 51,200 images: 10 s of transfer and 20 s of slower kernels; 2 ms of waiting are too little.
  const std::vector<Record> records{make_record({.jitter = {1, 1}, .train_samples = 51200}),
                                    make_record({.workers = 2,
                                                 .forward = 0.45,
                                                 .backward = 0.85,
                                                 .exposed_transfer = 0.05,
                                                 .exposed_wait = 0.002,
                                                 .communication = 0.16,
                                                 .transfer = 0.15,
                                                 .jitter = {1, 1},
                                                 .train_samples = 51200})};
  const std::string text = text_of(records);
  EXPECT_THAT(text,
              HasSubstr("Of the 30.4 s that an epoch of all images lost against the ideal T(1)/N: 20.0 s "
                        "slower kernels, 10.0 s exposed transfer."));
  EXPECT_THAT(text,
              HasSubstr("take 150.0 ms of transfer and 10.0 ms of waiting for a later rank; 67.5 % of both"));
}

TEST(Summary, SaysScaledSpeedupOfWeakAndSpeedupOfStrongScaling) {
  const std::string text = text_of(study());
  EXPECT_THAT(text, HasSubstr("batch 32: 2 workers (2 cores), scaled speedup 1.79"));
  EXPECT_THAT(text, HasSubstr("batch 32: 2 workers (2 cores), speedup 1.52"));
  EXPECT_THAT(text, Not(HasSubstr("times as fast")));
  EXPECT_THAT(text, HasSubstr("Baseline: 1 worker without any communicator, on 1 core."));
}

TEST(Summary, NamesEveryCaveatOfASpeedupAndNoneOfThemElsewhere) {
  auto one = make_record({.forward = 0.1, .backward = 0.1, .jitter = {0.8, 1, 1.2}});
  one.threads_per_worker = 2;
  const std::vector<Record> records{
      one, make_record({.workers = 2, .forward = 0.2, .backward = 0.1975, .jitter = {0.8, 1, 1.2}})};
  const std::string text = text_of(records);
  EXPECT_THAT(text, HasSubstr("(the interval holds 1: no clear gain; on the baseline's cores, shared out)"));
  const auto time = text.find("Where does the time go?");
  EXPECT_EQ(text.find("shared out", time), std::string::npos);
}

// A baseline of one repeat, timed while something else ran: 2 workers 2.75 times as fast, without a word.
TEST(Summary, SaysThatASpeedupAboveTheIdealIsNone) {
  const auto slow = make_record({.forward = 0.4, .backward = 0.8});
  EXPECT_THAT(text_of({slow, make_record({.workers = 2, .forward = 0.3, .backward = 0.6})}),
              HasSubstr("(above the ideal: the baseline was measured in a slower moment"));
  EXPECT_THAT(text_of({slow, make_record({.workers = 2, .forward = 0.4, .backward = 0.8})}),
              Not(HasSubstr("above the ideal")));
}

TEST(Summary, SaysThatTheLoaderWasFastEnough) {
  const auto record = make_record({.kind = "train", .scaling = "", .data_wait = 0.2});
  const std::string text = text_of({record});
  EXPECT_THAT(text,
              HasSubstr("although the loader was fast enough (scheduling): it could give 4,400 images/s"));
  EXPECT_THAT(text, Not(HasSubstr("The loader is a limit")));
}

TEST(Summary, SaysThatTheLoaderIsTheLimitAndWhatToDo) {
  // 3,657 images/s are used, 5,120 would be, a thread prepares 4,400: two threads would do 1.5 times that.
  const auto record = make_record({.kind = "train",
                                   .scaling = "",
                                   .forward = 0.0125,
                                   .backward = 0.0125,
                                   .update = 0,
                                   .data_wait = 0.01,
                                   .copy = 0,
                                   .other = 0,
                                   .jitter = {1, 1, 1}});
  const std::string text = text_of({record});
  EXPECT_THAT(text, HasSubstr("The loader is a limit: steps wait for data 28.6 % of their time; the loaders "
                              "could give 4,400 images/s, the steps would take 5,120. --loader-threads 2 (it "
                              "is 1) where cores are idle"));
}

TEST(Summary, SaysWhatHelpsALoaderThatNeedsMoreCoresThanThereAre) {
  golden::Run run{
      .forward = 0.0025, .backward = 0.0025, .update = 0, .data_wait = 0.025, .copy = 0, .other = 0};
  auto record = make_record(run);
  record.data.name = "folder";
  // 25,536 images/s are wanted, and a core prepares 4,840.
  EXPECT_THAT(
      text_of({record}),
      HasSubstr("A core prepares 4,840 images/s, so it would take 5.28 cores, and there are 2: images "
                "packed as pixels (paceline data pack --decoded) or a smaller size make it faster"));
  for (auto& rank : record.ranks) rank.loader_processor_s = 0.01 * rank.loader_prepare_s;
  EXPECT_THAT(text_of({record}),
              HasSubstr("Its threads computed for 1.0 % of that time and waited for the disk"));
}

// The summary spoke of the loader only where the cell of its other answers waited.
TEST(Summary, NamesALoaderThatIsTheLimitOfAnotherCell) {
  golden::Run run{.local_batch = 32,
                  .forward = 0.001,
                  .backward = 0.001,
                  .update = 0,
                  .data_wait = 0.006,
                  .copy = 0,
                  .other = 0};
  const std::vector<Record> records{make_record({}), make_record({.workers = 2}), make_record(run)};
  EXPECT_THAT(text_of(records),
              HasSubstr("The loader is a limit in 1 of 3 cells; at scale weak b 32, N 1: "));
}

// Cells of one worker in part from weak and in part from strong scaling: the fastest was left off the curve,
// and the second best called the best of all.
TEST(Summary, CallsNoBatchTheBestOfAllThatIsNot) {
  const auto slow = make_record({.scaling = "strong", .local_batch = 32, .forward = 0.5, .backward = 0.5});
  auto fast = make_record({.scaling = "weak", .local_batch = 512, .forward = 0.5, .backward = 0.5});
  EXPECT_THAT(text_of({slow, fast}), HasSubstr("Which batch size? 512 on 1 worker"));
  fast.settings["loader-threads"] = "4";
  EXPECT_THAT(text_of({slow, fast}), AllOf(HasSubstr("Which batch size? 32 on 1 worker"),
                                           HasSubstr("the best of those that can be compared")));
}

TEST(Summary, SaysThatAKneeIsNotDecided) {
  std::vector<Record> records;
  for (const double slow : {0.5, 1.0, 2.0})
    records.push_back(
        make_record({.kind = "sweep", .scaling = "", .local_batch = 8, .forward = 0.05 * slow}));
  for (const double slow : {0.9, 1.0, 1.1})
    records.push_back(
        make_record({.kind = "sweep", .scaling = "", .local_batch = 16, .forward = 0.9 * slow}));
  const std::string text = text_of(records);
  EXPECT_THAT(text, HasSubstr("Not decided: 8 and 16 overlap; measure longer."));
  EXPECT_THAT(text, HasSubstr("| knee, not decided"));
}

}  // namespace
}  // namespace paceline::report
