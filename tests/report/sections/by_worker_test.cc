// The sections that tell workers apart, and ways to join them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "golden/records.h"
#include "report/study_records.h"

namespace paceline::report {
namespace {

using golden::make_record;
using measure::Phase;
using measure::Record;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Record two_workers(double slower, int repeat = 0) {
  auto record = make_record({.workers = 2, .repeat = repeat, .exposed_wait = 0.2});
  const double seconds = slower * static_cast<double>(record.window.steps);
  record.ranks[1].phases[static_cast<std::size_t>(Phase::forward)] += seconds;
  record.ranks[1].phases[static_cast<std::size_t>(Phase::exposed_wait)] -= seconds;
  for (int rank = 0; rank < 2; ++rank) {
    auto& one = record.ranks[static_cast<std::size_t>(rank)];
    one.bytes_sent = one.bytes_received = 8'000'000;
  }
  return record;
}

TEST(ByWorkerSection, NamesTheSlowestWithWhatTheOthersWait) {
  std::vector<Record> records;
  for (int repeat = 0; repeat < 3; ++repeat) {
    auto record = two_workers(0.15 + 0.001 * repeat, repeat);
    record.communication.processes = 2;
    record.ranks[1].process = 1;
    record.ranks[1].host = "b";
    record.ranks[1].peak_bytes = 3'000'000'000;
    records.push_back(std::move(record));
  }
  const auto text = text_of(records);
  EXPECT_THAT(text, AllOf(HasSubstr("How fast is each worker?"),
                          HasSubstr("scale weak b 128, N 2: the slowest is rank 1 (process 1 on host b)"),
                          HasSubstr("and 151.0 ms [148.4, 153.6] more than rank 0 (process 0)"),
                          HasSubstr("the others wait 200.5 ms of a step"), HasSubstr("3.00 GB")));
}

// Rank 1 was slower in one repeat of three: the next run may blame another.
TEST(ByWorkerSection, BlamesNobodyForWhatOneRepeatDid) {
  const auto text = text_of({two_workers(0.2, 0), two_workers(0, 1), two_workers(0.05, 2)});
  EXPECT_THAT(
      text,
      AllOf(HasSubstr("scale weak b 128, N 2: no worker is clearly the slowest; rank 1 has the most "
                      "own work"),
            HasSubstr("which the 3 repeats cannot tell from 0"), Not(HasSubstr("the slowest is rank"))));
  EXPECT_THAT(text_of({two_workers(0.2)}), AllOf(HasSubstr("one repeat does not tell whether that is chance"),
                                                 Not(HasSubstr("the slowest is rank"))));
}

TEST(ByWorkerSection, DoesNotBlameAWorkerForNoise) {
  const auto text = text_of({two_workers(0.01)});
  EXPECT_THAT(
      text,
      AllOf(HasSubstr("In 1 cell the workers are as fast as each other; the most above the mean, by 0.4 %, "
                      "is rank 1 of scale weak b 128, N 2."),
            Not(HasSubstr("the slowest is"))));
}

// The waterfall named a slowest worker, and beside it all were as fast as each other: in each repeat another.
TEST(ByWorkerSection, NamesSlowestOfEachRepeat) {
  std::vector<Record> records;
  for (int repeat = 0; repeat < 4; ++repeat) {
    records.push_back(make_record({.repeat = repeat}));
    records.push_back(two_workers(0.15, repeat));
    if (repeat % 2 == 1) std::swap(records.back().ranks[0].phases, records.back().ranks[1].phases);
  }
  const auto text = text_of(records);
  EXPECT_THAT(
      text, AllOf(HasSubstr("scale weak b 128, N 2: in each repeat one worker has more own work, 5.8 % above "
                            "the mean, but not the same in all"),
                  HasSubstr("slowest worker"), HasSubstr("no worker that is late in a run"),
                  Not(HasSubstr("as fast as each other")), Not(HasSubstr("workers that are alike"))));
}

TEST(ByWorkerSection, IsAbsentWithOneWorker) {
  EXPECT_THAT(text_of({make_record({})}), Not(HasSubstr("Which worker?")));
}

TEST(WaysSection, SetsThreadsAgainstDataParallel) {
  auto parallel = make_record({.workers = 2, .exposed_transfer = 0.5});
  parallel.settings["parallel"] = parallel.communication.parallel.emplace("data-parallel");
  const auto text = text_of({make_record({.workers = 2}), parallel});
  EXPECT_THAT(text, AllOf(HasSubstr("Threads, processes, or one worker for all?"),
                          HasSubstr("threads of one process, data-parallel"),
                          HasSubstr("b 128, N 2: threads of one process is the fastest"),
                          HasSubstr("data-parallel 1.41 [1.38, 1.44] times as long (one repeat).")));
  EXPECT_THAT(text_of({make_record({.workers = 2})}), Not(HasSubstr("one worker for all")));
}

// A disturbed step is an upper bound: the way that was slower beside other programs may be the fastest.
TEST(WaysSection, DecidesNothingBesideOtherPrograms) {
  struct Case {
    std::optional<double> of_threads, of_processes;  ///< cores of other programs
    const char* expected;
  };
  for (const auto& [of_threads, of_processes, expected] :
       {Case{0.0, 1.5, "had the shortest step"}, Case{0.0, std::nullopt, "had the shortest step"},
        Case{1.5, 1.5, "had the shortest step"}, Case{1.5, 0.0, "is the fastest"}})
    for (const char* kind : {"scale", "train"}) {
      auto threads = make_record({.kind = kind, .workers = 2});
      auto parallel = make_record({.kind = kind, .workers = 2, .exposed_transfer = 0.5});
      parallel.settings["parallel"] = parallel.communication.parallel.emplace("data-parallel");
      threads.window.others_cores = of_threads;
      parallel.window.others_cores = of_processes;
      const std::string beside =
          of_threads == 1.5 || of_processes ? "beside other programs" : "perhaps beside other programs";
      EXPECT_THAT(text_of({threads, parallel}),
                  AllOf(HasSubstr(fmt::format("b 128, N 2: threads of one process {}", expected)),
                        HasSubstr(fmt::format("(one repeat, {})", beside)),
                        HasSubstr(of_processes ? "disturbed: other programs worked meanwhile"
                                               : "~ it is not known whether other programs worked")))
          << expected << kind;
    }
}

}  // namespace
}  // namespace paceline::report
