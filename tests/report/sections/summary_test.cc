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
                        "slower kernels, 10.0 s exposed transfer (one repeat)."));
  EXPECT_THAT(text, HasSubstr("take, on average over all steps, 150.0 ms of transfer and 10.0 ms of waiting "
                              "for a later rank; 67.5 % of both"));
}

// The last row of as many workers answered: a single cell of another version, against the baseline of this.
TEST(Summary, AnswersWithTheRowOfTheBaselinesVersion) {
  std::vector<Record> records{make_record({.jitter = {1, 1}}),
                              make_record({.workers = 2, .forward = 0.5, .jitter = {1, 1}}),
                              make_record({.workers = 2, .forward = 0.6, .jitter = {1, 1}})};
  records[2].environment.version = "0.2.0";
  EXPECT_THAT(text_of(records),
              AllOf(HasSubstr("on 2 workers (2 cores), version 0.1.0 (abc1234), takes 1.32 s"),
                    Not(HasSubstr("baseline measured with"))));
  records.erase(records.begin() + 1);
  const std::string text = text_of(records);
  EXPECT_THAT(text, HasSubstr("on 2 workers (2 cores) takes 1.42 s"));
  EXPECT_THAT(text,
              HasSubstr("slower kernels (one repeat; baseline measured with version 0.1.0 (abc1234), this "
                        "with version 0.2.0)."));
  EXPECT_THAT(
      text,
      HasSubstr("(baseline measured with version 0.1.0 (abc1234), this with version 0.2.0; one repeat)"));
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
  EXPECT_THAT(
      text,
      HasSubstr("(the interval holds 1: no clear gain; on the baseline's cores, shared out; not decided: 1 "
                "worker gave 0.95 ["));
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
  EXPECT_THAT(text_of({slow, fast}),
              AllOf(HasSubstr("Which batch size? Not answered: only batch 32 was compared, on 1 worker"),
                    Not(HasSubstr("the best of all"))));
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

// "More were not faster by 5 %" stood there although 4 workers on 2 cores were 1.44 times as fast.
TEST(Summary, SaysThatWorkersWithoutACoreEachAreLeftOutOfTheAnswer) {
  const std::vector<Record> records{
      make_record({.local_batch = 32}),
      make_record(
          {.workers = 4, .local_batch = 32, .forward = 1.1, .backward = 2.2, .oversubscribed = true})};
  const std::string text = text_of(records);
  EXPECT_THAT(text, HasSubstr("4 workers share cores and are left out, at 1.47 [1.4"));
  EXPECT_THAT(text, Not(HasSubstr("not faster")));
}

TEST(Summary, ChoosesNoneOfWorkersThatAllShareCores) {
  const std::string text = text_of({make_record({.workers = 4, .oversubscribed = true}),
                                    make_record({.workers = 8, .oversubscribed = true})});
  EXPECT_THAT(
      text,
      HasSubstr("Not answered: weak scaling at local batch 128 has 4, 8 workers, which all share cores"));
}

TEST(Summary, DecidesNoNumberOfWorkersThatAnIntervalLeavesOpen) {
  const auto one = make_record({.forward = 0.1, .backward = 0.1, .jitter = {0.5, 0.8, 1, 1, 1.5, 2}});
  EXPECT_THAT(
      text_of(
          {one, make_record(
                    {.workers = 2, .forward = 0.25, .backward = 0.2, .jitter = {0.5, 0.8, 1, 1, 1.5, 2}})}),
      AllOf(HasSubstr("not decided: 2 workers gave 0.9"), Not(HasSubstr("not faster"))));
  // Twice the time of a step for twice the images, and steps that hardly differ: decided.
  EXPECT_THAT(
      text_of(
          {make_record({.jitter = {1, 1, 1, 1, 1, 1.001}}),
           make_record({.workers = 2, .forward = 0.8, .backward = 1.6, .jitter = {1, 1, 1, 1, 1, 1.001}})}),
      AllOf(HasSubstr("more were not faster by 5 %"), Not(HasSubstr("not decided"))));
}

TEST(Summary, SaysWhichWorkersWereSkippedAndWhy) {
  const std::vector<Record> records{
      make_record({.local_batch = 8}),
      golden::make_skipped({.workers = 64, .local_batch = 8}, "--workers 64 x --threads 2 is 128 threads")};
  const std::string text = text_of(records);
  EXPECT_THAT(text,
              HasSubstr("How many workers? Not answered: weak scaling at local batch 8 has 1 worker alone; "
                        "64 workers: skipped: --workers 64 x --threads 2 is 128 threads."));
  EXPECT_THAT(text, Not(HasSubstr("`paceline scale` answers it")));
}

TEST(Summary, NeverGivesAnEfficiencyAboveTheIdealWithoutAWord) {
  const golden::Run noisy{.jitter = {0.8, 0.9, 1, 1, 1.1, 1.2}};
  auto two = noisy;
  two.workers = 2;
  two.forward = 0.37;
  EXPECT_THAT(text_of({make_record(noisy), make_record(two)}),
              HasSubstr("above 100 % within its interval: noise"));
  auto busy = make_record({.forward = 0.6});
  busy.window.others_cores = 0.7;
  auto quiet = make_record({.workers = 2});
  quiet.window.others_cores = 0.0;
  EXPECT_THAT(text_of({busy, quiet}),
              HasSubstr("above the ideal: other programs kept 0.70 cores busy while the "
                        "baseline was measured"));
}

TEST(Summary, SaysOfASingleRepeatThatItIsOne) {
  std::vector<Record> records{
      make_record({.local_batch = 32}), make_record({.workers = 2, .local_batch = 32}),
      make_record({.kind = "sweep", .local_batch = 8}), make_record({.kind = "sweep", .local_batch = 16})};
  const std::string text = text_of(records);
  for (const char* question : {"Which batch size?", "How many workers?"}) {
    const auto begin = text.find(question);
    EXPECT_THAT(text.substr(begin, text.find('\n', begin) - begin), HasSubstr("one repeat")) << question;
  }
  EXPECT_THAT(text_of(study()), Not(HasSubstr("one repeat")));
}

TEST(Summary, SaysOfTwoRepeatsThatTheyAreTwo) {
  std::vector<Record> records;
  for (int repeat = 0; repeat < 2; ++repeat)
    for (const int workers : {1, 2})
      records.push_back(make_record({.workers = workers, .local_batch = 32, .repeat = repeat}));
  EXPECT_THAT(text_of(records), HasSubstr("two repeats"));
  EXPECT_THAT(text_of(study()), Not(HasSubstr("two repeats")));
}

// The knee had three repeats, the best batch that made it one a single one; so had the rival of two workers.
TEST(Summary, SaysTheFewestRepeatsOfAllThatWasCompared) {
  std::vector<Record> records;
  for (const bool is_sweep : {true, false})
    for (const int size : {1, 2})
      for (int repeat = 0; repeat < (size == 1 ? 3 : 1); ++repeat)
        records.push_back(make_record({.kind = is_sweep ? "sweep" : "scale",
                                       .scaling = is_sweep ? "" : "weak",
                                       .workers = is_sweep ? 1 : size,
                                       .local_batch = is_sweep ? 8 * size : 64,
                                       .repeat = repeat,
                                       .forward = size == 2 ? 2.0 : 0.4}));
  for (const std::string& text : {text_of(records), to_terminal(build(records), 10000)})
    for (const char* question : {"Which batch size?", "How many workers?"}) {
      const auto begin = text.find(question, text.find("Summary"));
      EXPECT_THAT(text.substr(begin, text.find('\n', begin) - begin), HasSubstr("one repeat at the least"))
          << question;
    }
}

// A sweep of which a single batch was measured had a "knee, best" and an answer.
TEST(Summary, SaysThatAKneeIsAmongBatchesOfTwoVersions) {
  std::vector<Record> records{make_record({.kind = "sweep", .scaling = "", .local_batch = 32}),
                              make_record({.kind = "sweep", .scaling = "", .local_batch = 64})};
  EXPECT_THAT(text_of(records), HasSubstr(" images/s (one repeat), "));
  records[1].environment.version = "0.2.0";
  EXPECT_THAT(text_of(records),
              HasSubstr(" images/s (one repeat; batches measured with version 0.1.0 (abc1234) and "
                        "with version 0.2.0), "));
}

TEST(Summary, CallsTheOnlyBatchNeitherKneeNorBest) {
  const std::string text = text_of({make_record({.kind = "sweep", .scaling = "", .local_batch = 8})});
  EXPECT_THAT(text, HasSubstr("Which batch size? Not answered: only batch 8 was measured"));
  EXPECT_THAT(text, Not(HasSubstr("knee, best")));
}

TEST(Summary, SaysWhichLimitTheLargestBatchMet) {
  auto largest =
      golden::make_skipped({.kind = "sweep", .scaling = "", .local_batch = 10240, .train_samples = 10240},
                           "the largest batch that memory and data set allow, by the plan; not timed");
  largest.memory.available_bytes = 200'000'000'000;
  auto beyond = golden::make_skipped(
      {.kind = "sweep", .scaling = "", .local_batch = 16384, .train_samples = 10240}, "exceeds the data set");
  const auto sweep = [](std::int64_t batch) {
    return make_record({.kind = "sweep", .scaling = "", .local_batch = batch, .train_samples = 10240});
  };
  EXPECT_THAT(text_of({sweep(4096), sweep(8192), largest, beyond}),
              AllOf(HasSubstr("The largest is 10,240: there the data set ends, not memory."),
                    Not(HasSubstr("largest that fits is"))));
  auto fits = golden::make_skipped(
      {.kind = "sweep", .scaling = "", .local_batch = 700, .train_samples = 10240}, "not timed");
  fits.memory.available_bytes = fits.memory.plan_bytes;
  auto too_large = golden::make_skipped(
      {.kind = "sweep", .scaling = "", .local_batch = 1024, .train_samples = 10240}, "does not fit");
  EXPECT_THAT(text_of({sweep(256), sweep(512), fits, too_large}),
              HasSubstr("The largest that fits into memory is 700."));
}

// "1.53 ms of transfer" and "164.3 us" of the same all-reduce, a mean and a median, stood below each other.
TEST(Summary, SaysWhichFiguresOfAnAllReduceAreMeansAndWhichMedians) {
  const std::string text = text_of(study());
  EXPECT_THAT(text, HasSubstr("The all-reduces of a step take, on average over all steps, "));
  EXPECT_THAT(text, HasSubstr(" (median step)"));
}

// "Of the 34.0 ms that an epoch lost: 351 ms waiting for a later rank, -352.7 ms slower kernels."
TEST(Summary, ExplainsNoLossThatIsSmallAgainstItsParts) {
  const std::vector<Record> records{
      make_record({.jitter = {1, 1}}),
      make_record(
          {.workers = 2, .forward = 0.3, .exposed_wait = 0.11, .communication = 0.11, .jitter = {1, 1}})};
  const std::string text = text_of(records);
  EXPECT_THAT(text, HasSubstr("there is nothing to explain"));
  EXPECT_THAT(text, Not(HasSubstr("Of the ")));
}

TEST(Summary, ExplainsNoLossWithinItsNoise) {
  const std::vector<double> noise{0.8, 0.85, 0.9, 1, 1, 1.1, 1.15, 1.2};
  EXPECT_THAT(text_of({make_record({.jitter = noise}),
                       make_record({.workers = 2, .forward = 0.43, .jitter = noise})}),
              HasSubstr("there is nothing to explain"));
}

TEST(Summary, SaysOnceWhatAnIntervalIs) {
  const std::string text = text_of(study());
  const auto first = text.find("[low, high]");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(text.find("[low, high]", first + 1), std::string::npos);
  EXPECT_THAT(text, HasSubstr("at least 95 %"));
  EXPECT_THAT(text, HasSubstr("fewer than 6"));
}

}  // namespace
}  // namespace paceline::report
