/// The lab reports that the rules grew from (docs/mistakes.md), and records.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "check/check.h"
#include "check/rule.h"
#include "golden/records.h"

namespace paceline::check {
namespace {

using testing::HasSubstr;

std::vector<Finding> findings_of(const std::string& csv, const std::string& rule) {
  std::vector<Finding> found;
  for (auto& finding : check_table(table::read_table(csv, "t.csv")).findings)
    if (finding.rule == rule) found.push_back(finding);
  return found;
}

TEST(ReportFour, SpeedupsAreNTimesTooLarge) {
  const auto found = findings_of(
      "run,workers,local_batch,time_s,time_of,claimed_speedup\n1x32,1,32,25.86,epoch,\n2x32,2,32,36.93,epoch,1.40\n4x32,4,32,27.25,"
      "epoch,3.80\n1x512,1,512,11.43,epoch,\n2x512,2,512,12.41,epoch,1.84\n4x512,4,512,11.78,epoch,3.88\n",
      "ratio.speedup");
  ASSERT_EQ(found.size(), 4U);
  for (const auto& finding : found) {
    EXPECT_EQ(finding.severity, Severity::error);
    EXPECT_THAT(finding.sentence, HasSubstr("already contains the 1/N"));
  }
  EXPECT_NEAR(found[0].corrected->value, 0.700, 0.001);
  EXPECT_NEAR(found[3].corrected->value, 0.970, 0.001);
}

TEST(ReportTwo, PartsHoldAResidualOfTimesWithoutData) {
  const std::string csv =
      "run,workers,local_batch,time_s,time_of,compute_s,communication_s,communication_is\nn1,1,32,271.984,epoch,269.804,,\n"
      "n2,2,32,153.240,epoch,152.249,17.347,exposed\nn4,4,32,79.637,epoch,78.910,11.459,exposed\n";
  const auto sums = findings_of(csv, "parts.sum");
  ASSERT_EQ(sums.size(), 2U);
  EXPECT_EQ(sums[0].severity, Severity::error);
  EXPECT_NEAR(sums[0].corrected->value, 153.24 - 17.347, 1e-6);
  const auto residuals = findings_of(csv, "parts.residual");
  ASSERT_EQ(residuals.size(), 2U);
  EXPECT_THAT(residuals[0].sentence, HasSubstr("152.249 - 269.804 / 2"));
}

TEST(ReportTwo, BandwidthsAreOfOneStepAndInMB) {
  const auto found = findings_of(
      "# parameters = 11173962\n# element_bytes = 4\n# train_samples = 50000\n"
      "run,workers,local_batch,time_of,communication_s,claimed_bandwidth,bandwidth_unit,bandwidth_is\n"
      "a,2,32,epoch,17.347,2.577,GB/s,busbw\nb,2,128,epoch,10.294,4.342,GB/s,busbw\nc,2,512,epoch,10.377,4.307,GB/s,busbw\n",
      "bandwidth.formula");
  ASSERT_EQ(found.size(), 3U);
  for (const auto& finding : found) {
    EXPECT_EQ(finding.severity, Severity::error) << finding.sentence;
    EXPECT_THAT(finding.sentence, HasSubstr("the bytes of one step"));
  }
  EXPECT_NEAR(found[0].corrected->value, 2.012, 0.01);
  EXPECT_NEAR(found[1].corrected->value, 0.847, 0.01);
  EXPECT_NEAR(found[2].corrected->value, 0.207, 0.01);
}

TEST(ReportThree, StepsAreThoseOfSixWorkers) {
  const auto found = findings_of(
      "run,workers,local_batch,train_samples,epochs,steps\ntwo nodes,4,128,60000,40,3120\n", "size.workers");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].corrected->value, 6);
  EXPECT_EQ(found[0].rows.front(), "two nodes");
}

TEST(Baselines, AreOfTheOwnProgramWhereTheClaimIs) {
  const std::string csv =
      "run,program,workers,local_batch,time_s,time_of,claimed_speedup\na1,a,1,32,100.0,epoch,\na2,a,2,32,51.0,epoch,1.96\n"
      "b2,b,2,32,40.0,epoch,\nb4,b,4,32,21.0,epoch,1.90\n";
  for (const auto& finding : check_table(table::read_table(csv, "t.csv")).findings)
    EXPECT_NE(finding.severity, Severity::error) << finding.rule << ": " << finding.sentence;
}

TEST(Units, OfBandwidth) {
  EXPECT_EQ(bytes_per_s("GB/s"), 1e9);
  EXPECT_EQ(bytes_per_s("GiB/s"), 1073741824.0);
  EXPECT_EQ(bytes_per_s("Gbit/s"), 1.25e8);
  EXPECT_EQ(bytes_per_s("Gbps"), 1.25e8);
  EXPECT_EQ(bytes_per_s("MB/s"), 1e6);
  EXPECT_EQ(bytes_per_s("kB/s"), 1e3);
  EXPECT_EQ(bytes_per_s("B/s"), 1.0);
  EXPECT_FALSE(bytes_per_s("GB"));
  EXPECT_FALSE(bytes_per_s(""));
  EXPECT_FALSE(bytes_per_s("parsecs"));
}

TEST(Records, ThatAreSoundDrawNoError) {
  std::vector<measure::Record> records;
  for (const int workers : {1, 2, 4}) records.push_back(golden::make_record({.workers = workers}));
  EXPECT_EQ(check_records(records).number_of(Severity::error), 0U);
}

TEST(Records, ThatContradictThemselvesAreNamedByTheirRule) {
  auto record = golden::make_record({.workers = 2});
  record.global_batch += 1;
  const auto result = check_records({&record, 1});
  ASSERT_GE(result.number_of(Severity::error), 1U);
  EXPECT_EQ(result.findings.front().rule, "size.product");
  EXPECT_EQ(result.findings.front().rows.front(), record.id);
}

TEST(Records, OfTheRepositoryDrawNoError) {
  namespace fs = std::filesystem;
  std::vector<measure::Record> records;
  for (const auto& entry :
       fs::recursive_directory_iterator(std::string(PACELINE_SOURCE_DIR) + "/results/records")) {
    if (entry.path().extension() != ".json") continue;
    const auto text = base::read_file(entry.path());
    if (text.find("\"paceline-record-") == std::string::npos) continue;
    try {
      records.push_back(measure::record_from_json(text, entry.path().string()));
    } catch (const std::exception&) {  // a list of them, or another form
    }
  }
  EXPECT_GE(records.size(), 20U);
  for (const auto& finding : check_records(records).findings)
    EXPECT_NE(finding.severity, Severity::error) << finding.rule << ": " << finding.sentence;
}

}  // namespace
}  // namespace paceline::check
