#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/collectives.h"
#include "base/file.h"
#include "cli/program.h"
#include "comm/probe.h"
#include "measure/record.h"

namespace paceline::cli {
namespace {

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
  for (const char* said : {"What do the collectives give alone?", "| reduce_scatter |", "| all_gather |",
                           "busbw [GB/s]", "Latency and bandwidth", "communicator"})
    EXPECT_THAT(page, HasSubstr(said));
  EXPECT_THAT(page, Not(HasSubstr("Not measured")));
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
  EXPECT_THAT(run_program({"report", "cm"}, here).out, HasSubstr("One rank alone transfers nothing"));
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

}  // namespace
}  // namespace paceline::cli
