/// Records as rows of a table: what is exported is what check reads.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "check/check.h"
#include "measure/ledger.h"

namespace paceline::check {
namespace {

namespace fs = std::filesystem;
using measure::Phase;

measure::Record record_of_two() {
  measure::Record record;
  record.id = "=cmd()";
  record.kind = "train";
  record.model.name = "mlp";
  record.device = "cpu";
  record.workers = 2;
  record.local_batch = 8;
  record.global_batch = 16;
  record.window.steps = 2;
  record.settings = {{"seed", "7"}, {"optimizer", "lars"}, {"note", "@x"}, {"gap", "-1"}};
  for (int r = 0; r < 2; ++r) {
    measure::RankRecord rank{.rank = r, .wall_s = 5.5, .step_s = {1, 3}};
    rank.phases[static_cast<std::size_t>(Phase::forward)] = 1;
    rank.phases[static_cast<std::size_t>(Phase::backward)] = r == 0 ? 1 : 2;
    rank.phases[static_cast<std::size_t>(Phase::exposed_wait)] = r == 0 ? 1 : 0;
    rank.phases[static_cast<std::size_t>(Phase::exposed_transfer)] = 0.5;
    rank.phases[static_cast<std::size_t>(Phase::data_wait)] = 0.25;
    rank.phases[static_cast<std::size_t>(Phase::other)] = 0.25;
    rank.phases[static_cast<std::size_t>(Phase::evaluation)] = 1;  // no part of a step
    rank.phases[static_cast<std::size_t>(Phase::checkpoint)] = 0.5;
    record.ranks.push_back(rank);
  }
  return record;
}

TEST(RecordRows, HoldMeansOverStepsAndRanksThatAddUp) {
  const auto row = row_of(record_of_two());
  EXPECT_EQ(row.value("time_s"), 2);
  EXPECT_EQ(row.value("compute_s"), 1.25);
  EXPECT_EQ(row.value("communication_s"), 0.5);
  EXPECT_EQ(row.value("transfer_s"), 0.25);
  EXPECT_EQ(row.value("late_peer_s"), 0.25);
  EXPECT_EQ(row.value("data_wait_s"), 0.125);
  EXPECT_EQ(row.value("other_s"), 0.125);
  EXPECT_EQ(row.value("rate_per_s"), 8);
  EXPECT_EQ(row.text("optimizer"), "lars");
  EXPECT_EQ(row.text("seed"), "7");
}

TEST(RecordRows, AreNoFormulasOfASpreadsheet) {
  const auto row = row_of(record_of_two());
  EXPECT_EQ(row.text("run"), "'=cmd()");
  EXPECT_EQ(row.settings.at("note"), "'@x");
  EXPECT_EQ(row.settings.at("gap"), "-1") << "a number is none";
}

TEST(RecordRows, OfAWindowWithoutStepsHaveNoTime) {
  auto record = record_of_two();
  record.window.steps = 0;  // damaged: the ranks list two
  EXPECT_EQ(row_of(record).value("time_s"), std::nullopt);
}

TEST(RecordRows, LeaveOutWhatDidNotEndAndWhatTrainedNothing) {
  auto records = std::vector{record_of_two(), record_of_two(), record_of_two()};
  records[1].status = "failed";
  records[2].kind = "comm";
  EXPECT_EQ(table_of_records(records).rows.size(), 1u);
}

// The public record of results, exported and read back: nothing is lost, and check finds no error in it.
TEST(RecordRows, OfOurOwnResultsAreReadBackAndSound) {
  std::vector<measure::Record> records;
  for (const auto& entry :
       fs::recursive_directory_iterator(fs::path(PACELINE_SOURCE_DIR) / "results/records")) {
    if (entry.path().extension() != ".json") continue;
    const auto text = base::read_file(entry.path());
    if (text.find("\"paceline-record-") == std::string::npos || text.find("\"records\"") != std::string::npos)
      continue;
    try {
      records.push_back(measure::record_from_json(text, entry.path().string()));
    } catch (const base::Error&) {  // of another form: a benchmark's
    }
  }
  const auto table = table_of_records(records);
  ASSERT_GT(table.rows.size(), 20u);
  for (const auto& text : {table::to_csv(table), table::to_plain_csv(table)}) {
    const auto back = table::read_table(text, "exported.csv");
    ASSERT_EQ(back.rows.size(), table.rows.size());
    for (std::size_t i = 0; i < back.rows.size(); ++i) {
      EXPECT_EQ(back.rows[i].settings, table.rows[i].settings);
      EXPECT_EQ(back.rows[i].value("time_s"), table.rows[i].value("time_s"));
      EXPECT_EQ(back.rows[i].text("run"), table.rows[i].text("run"));
    }
  }
  // A study's rows stand in one table; those of different studies share names of runs and nothing else.
  for (const auto& row : table.rows) {
    table::Table alone{.where = "records"};
    alone.rows.push_back(row);
    for (const auto& finding : check_table(alone).findings)
      EXPECT_NE(finding.severity, Severity::error) << finding.rule << ": " << finding.sentence;
  }
}

}  // namespace
}  // namespace paceline::check
