#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/steps/bandwidth.h"
#include "base/file.h"
#include "cli/commands/collectives.h"
#include "cli/program.h"
#include "comm/probe.h"
#include "measure/events.h"
#include "measure/record.h"
#include "train/made_up_machine.h"

namespace paceline::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> comm(const std::vector<std::string>& more) {
  std::vector<std::string> words{"comm", "--sizes", "1K:64K", "--repeats", "3"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(Comm, AnalysisAndCommunicatorMeanTheSameBusBandwidth) {
  for (const auto trial : comm::kTrials)
    for (const int ranks : {1, 2, 3, 8})
      EXPECT_DOUBLE_EQ(analysis::bus_factor(name(trial.collective), ranks),
                       comm::bus_factor(trial.collective, ranks))
          << name(trial.collective) << ranks;
}

TEST(Comm, ItsRecordBecomesAReportOfCollectives) {
  // The title was "Paceline:  on " and the answer "no record has more than one worker".
  const Folder folder;
  const RunConditions here{.directory = folder.path()};
  const auto measured = run_program(comm({"--workers", "2", "--out", "cm"}), here);
  ASSERT_EQ(measured.code, 0) << measured.err;
  EXPECT_THAT(measured.out, HasSubstr("2 ranks in 1 process, "));
  EXPECT_THAT(measured.out, HasSubstr("paceline report cm shows it"));
  const auto report = run_program({"report", "cm", "--markdown", "page.md", "--html", "page.html"}, here);
  ASSERT_EQ(report.code, 0) << report.err;
  const auto page = base::read_file(folder.path() / "page.md");
  EXPECT_THAT(page, HasSubstr("# Paceline: collectives of 2 ranks\n"));
  for (const char* said : {"How fast are the collectives alone?", "| reduce_scatter |", "| all_gather |",
                           "busbw [GB/s]", "Latency and bandwidth", "communicator"})
    EXPECT_THAT(page, HasSubstr(said));
  EXPECT_THAT(page, Not(HasSubstr("Not measured")));
}

TEST(Comm, ArraysOfADeviceAreCheckedAndTimedToo) {
  const Folder folder;
  const RunConditions here{.directory = folder.path()};
  const auto measured =
      run_program(comm({"--workers", "2", "--device", "cuda-on-host", "--out", "cm"}), here);
  ASSERT_EQ(measured.code, 0) << measured.err;
  EXPECT_THAT(measured.out, HasSubstr("devices' arrays by way of the host"));
  EXPECT_THAT(measured.out, HasSubstr("one-way limit of the link between the devices: unknown"));
  const auto record = measure::read_record(folder.path() / "cm/record.json");
  EXPECT_EQ(record.device, "cuda-on-host");
  EXPECT_EQ(record.communication.communicator, "local");
  EXPECT_EQ(record.collectives->size(), comm::kTrials.size() * 4);
  for (const auto& one : *record.collectives) EXPECT_TRUE(one.correct) << one.collective << one.bytes;
}

TEST(Comm, EndsInOneScreen) {
  const Folder folder;
  const RunConditions here{.directory = folder.path()};
  const auto shown = run_program(comm({"--workers", "2", "--out", "cm"}), here);
  ASSERT_EQ(shown.code, 0) << shown.err;
  EXPECT_LE(std::ranges::count(shown.out, '\n'), 25) << shown.out;
  for (const auto trial : comm::kTrials) EXPECT_THAT(shown.out, HasSubstr(name(trial.collective)));
  EXPECT_THAT(shown.out, AllOf(HasSubstr(" 65536 "), Not(HasSubstr(" 4096 ")), HasSubstr("latency us"),
                               HasSubstr("--tables prints each size")));
  const auto all = run_program(comm({"--workers", "2", "--tables", "--out", "all"}), here);
  EXPECT_THAT(all.out, AllOf(HasSubstr(" 4096 "), HasSubstr("p95 us")));
  // A busy machine may show none; whatever the record holds is printed.
  const auto record = measure::read_record(folder.path() / "all/record.json");
  for (const auto& fit : *record.link_fits)
    EXPECT_THAT(all.out,
                HasSubstr(fit.collective + (fit.in_place ? " in place: latency" : " out of place: latency")));
}

TEST(Comm, OneRankIsGivenNoBandwidth) {
  const Folder folder;
  const RunConditions here{.directory = folder.path()};
  const auto measured = run_program(comm({"--workers", "1", "--out", "cm"}), here);
  ASSERT_EQ(measured.code, 0) << measured.err;
  EXPECT_THAT(measured.out, HasSubstr("1 rank in 1 process, "));
  EXPECT_THAT(measured.out, HasSubstr("one rank alone transfers nothing"));
  EXPECT_THAT(measured.out, Not(HasSubstr("GB/s")));
  EXPECT_TRUE(measure::read_record(folder.path() / "cm/record.json").link_fits->empty());
  EXPECT_THAT(run_program({"report", "cm", "--tables"}, here).out,
              HasSubstr("One rank alone transfers nothing"));
}

TEST(Comm, ASecondRunLeavesTheFirstRecordAlone) {
  const Folder folder;
  const RunConditions here{.directory = folder.path()};
  ASSERT_EQ(run_program(comm({"--out", "cm"}), here).code, 0);
  const auto before = base::read_file(folder.path() / "cm/record.json");
  const auto second = run_program(comm({"--out", "cm"}), here);
  EXPECT_EQ(second.code, 2);
  EXPECT_THAT(second.err, HasSubstr("--out cm: holds another run's record.json; give another --out"));
  EXPECT_EQ(base::read_file(folder.path() / "cm/record.json"), before);
  for (int run = 0; run < 2; ++run) EXPECT_EQ(run_program(comm({}), here).code, 0);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path() / "paceline-out"), {}), 2)
      << "without --out each has a directory of its own, as trainings have";
}

TEST(Comm, SaysEachSizeInItsEvents) {
  const Folder folder;
  const RunConditions here{.directory = folder.path()};
  ASSERT_EQ(run_program(comm({"--workers", "2", "--out", "cm"}), here).code, 0);
  std::vector<measure::Event> events;
  for (const auto& line : measure::EventTail(folder.path() / "cm" / measure::kEventsFile).read())
    events.push_back(measure::event_from_json(line.text).value());
  ASSERT_GT(events.size(), 2U);
  EXPECT_EQ(events.front().name(), "start");
  EXPECT_EQ(events.front().text("kind"), "comm");
  EXPECT_EQ(events.front().whole("workers"), 2);
  EXPECT_EQ(events.back().name(), "end");
  EXPECT_EQ(events.back().text("status"), "complete");
  const auto record = measure::read_record(folder.path() / "cm/record.json");
  ASSERT_EQ(events.size(), record.collectives->size() + 2);
  for (std::size_t i = 0; i < record.collectives->size(); ++i) {
    const auto& event = events[i + 1];
    const auto& one = (*record.collectives)[i];
    EXPECT_EQ(event.name(), "collective");
    EXPECT_EQ(event.text("collective"), one.collective);
    EXPECT_EQ(event.whole("bytes"), one.bytes);
    EXPECT_EQ(event.number("busbw_gb_per_s"), analysis::figures(one, 2).busbw->median);
  }
}

TEST(Comm, AllReduceAloneIsTimedOverSizesForAboutAsLongAsAsked) {
  train::Options options;
  options.workers = 2;
  options.pin = false;
  const auto backend = train::backend_of("cpu");
  const auto record = measure_all_reduce(options, backend, 0.05);
  EXPECT_EQ(record.kind, "comm");
  EXPECT_EQ(record.status, "complete");
  EXPECT_EQ(record.workers, 2);
  ASSERT_EQ(record.collectives->size(), 7U);  // 4 KiB to 16 MiB
  for (const auto& one : *record.collectives) {
    EXPECT_EQ(one.collective, "all_reduce");
    EXPECT_TRUE(one.in_place && one.correct) << one.bytes;
    EXPECT_GE(one.seconds.size(), 5U) << one.bytes;
  }
  EXPECT_EQ(record.collectives->back().bytes, 16 << 20);
  EXPECT_GT(largest_busbw_gb_per_s(record).value(), 0);
  EXPECT_FALSE(largest_busbw_gb_per_s(measure::Record{}));
  const auto repetitions = [&](double seconds) {
    std::size_t all = 0;
    const auto timed = measure_all_reduce(options, backend, seconds);
    for (const auto& one : *timed.collectives) all += one.seconds.size();
    return all;
  };
  EXPECT_EQ(repetitions(0), 7U * 5);
  EXPECT_GT(repetitions(0.5), 7U * 5) << "of one size alone others may hold the few up that say how many fit";
}

}  // namespace
}  // namespace paceline::cli
