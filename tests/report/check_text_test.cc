/// The section "What holds, and what does not", and reports of tables alone.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "check/check.h"
#include "golden/records.h"
#include "report/build.h"
#include "report/page_data.h"

namespace paceline::report {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

table::Table wrong_table() {
  return table::read_table(
      "run,workers,local_batch,time_s,time_of,compute_s,communication_s,claimed_speedup\nn1,1,128,100.0,epoch,99.0,unknown,\nn4,4,128,125.0,"
      "epoch,110.0,unknown,3.20\n",
      "/home/somebody/t.csv");
}

TEST(CheckSection, ShowsPrintedBesideCorrectedAndWhatIsUnknown) {
  const auto table = wrong_table();
  const auto document = build_with_tables({}, {&table, 1}, {.command = "paceline report t.csv"});
  ASSERT_EQ(document.sections.size(), 2U);
  EXPECT_EQ(document.sections[0].title, "What holds, and what does not");
  const auto text = to_terminal(document);
  EXPECT_THAT(text, AllOf(HasSubstr("ratio.speedup"), HasSubstr("3.20"), HasSubstr("0.8"),
                          HasSubstr("already contains"), HasSubstr("unknown"), HasSubstr("Not checked")));
  EXPECT_THAT(to_json(document), AllOf(HasSubstr("check-speedup"), Not(HasSubstr("somebody"))));
  EXPECT_THAT(with_plain_data(to_html(document)), HasSubstr("ratio.speedup"));
}

TEST(CheckSection, StandsBesideTheSectionsOfRecords) {
  const std::vector<measure::Record> records{golden::make_record({.workers = 1}),
                                             golden::make_record({.workers = 2})};
  const auto table = wrong_table();
  const auto with = build_with_tables(records, {&table, 1});
  const auto alone = build(records);
  ASSERT_EQ(with.sections.size(), alone.sections.size() + 2);
  EXPECT_EQ(with.title, alone.title);
}

TEST(CheckSection, OfSeveralTablesHasANameForEach) {
  const std::vector<table::Table> tables{wrong_table(), wrong_table()};
  const auto document = build_with_tables({}, tables);
  ASSERT_EQ(document.sections.size(), 4U);
  EXPECT_NE(document.sections[0].id, document.sections[2].id);
}

TEST(CheckJson, HasExactlyTheDocumentedForm) {
  const auto json = nlohmann::json::parse(check_json(check::check_table(wrong_table())));
  ASSERT_TRUE(json.at("findings").is_array());
  const auto& finding = json.at("findings").at(0);
  EXPECT_EQ(finding.at("rule"), "ratio.speedup");
  EXPECT_EQ(finding.at("severity"), "error");
  EXPECT_EQ(finding.at("rows").at(0), "n4");
  EXPECT_EQ(finding.at("printed"), "3.20");
  EXPECT_NEAR(finding.at("corrected").at("value").get<double>(), 0.8, 1e-9);
  EXPECT_LT(finding.at("corrected").at("low").get<double>(), 0.8);
  EXPECT_GT(finding.at("corrected").at("high").get<double>(), 0.8);
  EXPECT_TRUE(finding.at("sentence").is_string());
  EXPECT_TRUE(json.at("not_checked").at(0).contains("missing"));
}

TEST(CheckSarif, NamesRuleLevelAndPlace) {
  const auto json = nlohmann::json::parse(check_sarif(check::check_table(wrong_table())));
  EXPECT_EQ(json.at("version"), "2.1.0");
  const auto& run = json.at("runs").at(0);
  EXPECT_EQ(run.at("tool").at("driver").at("name"), "paceline");
  const auto& result = run.at("results").at(0);
  EXPECT_EQ(result.at("ruleId"), "ratio.speedup");
  EXPECT_EQ(result.at("level"), "error");
  EXPECT_EQ(result.at("locations").at(0).at("physicalLocation").at("region").at("startLine"), 3);
}

TEST(CheckJson, ReplacesWhatIsNoText) {
  const auto table =
      table::read_table("run,workers,time_s,time_of,claim\n\xff\xfe,2,5,epoch,it scales\n", "t.csv");
  EXPECT_FALSE(nlohmann::json::parse(check_json(check::check_table(table))).empty());
}

}  // namespace
}  // namespace paceline::report
