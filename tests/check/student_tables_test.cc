/// Tables as the authors of lab reports would type them, in their own words; what a careful reader would say.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "check/check.h"

namespace paceline::check {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// "error ratio.speedup: sentence" of each finding.
std::vector<std::string> said_of(const std::string& text) {
  std::vector<table::Table> tables;
  for (const auto& one : table::split_tables(text)) tables.push_back(table::read_table(one, "t.csv"));
  std::vector<std::string> all;
  const auto add = [&](const std::vector<Finding>& findings) {
    for (const auto& one : findings)
      all.push_back(fmt::format("{} {}: {}", name(one.severity), one.rule, one.sentence));
  };
  for (const auto& table : tables) add(check_table(table).findings);
  add(check_between(tables));
  return all;
}

testing::Matcher<const std::string&> is(const char* begin, const char* part = "") {
  return testing::AllOf(testing::StartsWith(begin), HasSubstr(part));
}

TEST(StudentTables, ResidualMayBeOfAnotherRow) {
  // compute - (time without loading of one GPU) / 2, while the stated times are others.
  const std::string head = "GPUs,Batch per GPU,Epoch time (s),Compute (s),Communication (s),Loader\n";
  const std::string rows =
      "1,32,271.984,,,yes\n1,32,269.804,,,no\n1,128,229.739,,,yes\n1,128,228.871,,,no\n"
      "2,32,153.240,152.249,17.347,yes\n2,128,125.222,124.729,10.294,yes\n";
  EXPECT_THAT(said_of(head + rows),
              Contains(is("warning parts.residual", "17.347 s is 152.249 - 269.804 / 2: a residual")));
  // One that is none.
  EXPECT_THAT(said_of(head + "1,32,271.984,,,yes\n2,32,153.240,131.9,21.3,yes\n"),
              Not(Contains(is("warning parts.residual"))));
}

TEST(StudentTables, ResidualShowsBesideAnotherCompute) {
  EXPECT_THAT(
      said_of("GPUs,Batch per GPU,Epoch time (s),Compute (s),Communication (s)\n1,128,229.74,,\n"
              "2,128,125.22,120.1,10.35\n4,128,63.71,60.2,6.275\n"),
      Contains(is("warning parts.residual", "the compute that it implies is 114.9 s, not the stated 120.1")));
}

TEST(StudentTables, PartsAboveTheTotalGetAFigure) {
  EXPECT_THAT(
      said_of(
          "GPUs,Batch per GPU,Epoch time (s),Compute (s),Communication (s)\n2,32,153.240,152.249,17.347\n"),
      Contains(is("warning parts.sum", "if it is exposed, compute is 135.9; if it is a total, 16.36 of it")));
}

TEST(StudentTables, StrongScalingGetsItsRatios) {
  EXPECT_THAT(said_of("GPUs,Global batch,Epoch time (s)\n1,32,271.984\n2,32,274.355\n4,32,241.768\n"),
              Contains(is("note ratio.unclaimed", "0.99 on 2 (0.50), 1.12 on 4 (0.28)")));
}

TEST(StudentTables, RatiosMayBeInvertedAndExchanged) {
  EXPECT_THAT(said_of("GPUs,Training time (s),Speedup\n1,456.147,\n2,379.691,0.53\n4,203.634,0.84\n"),
              Contains(is("error ratio.speedup", "0.53 and 0.84 of line 4 are exchanged")));
  EXPECT_THAT(said_of("GPUs,Training time (s),Speedup\n1,456.147,\n2,379.691,0.84\n4,203.634,0.53\n"),
              Contains(is("error ratio.speedup",
                          "0.53 is 1 / 1.86 of 379.691 / 203.634: over line 3 and the wrong way")));
}

TEST(StudentTables, ScalingMayBeAnEfficiency) {
  const auto is_wrong = Contains(testing::ContainsRegex("^(error|warning)"));
  EXPECT_THAT(said_of("GPUs,images/s,Scaling\n1,1655,100%\n2,3112,94%\n4,6025,91%\n"), Not(is_wrong));
  EXPECT_THAT(said_of("GPUs,images/s,Scaling factor\n1,1655,1.00\n2,3112,0.94\n4,6025,0.91\n"),
              Not(is_wrong));
  EXPECT_THAT(said_of("GPUs,images/s,Scaling\n1,1655,100%\n2,3112,94%\n4,6025,73%\n"),
              Contains(is("error ratio.efficiency", "give 6025 / 1655 / 4 = 0.91")));
}

TEST(StudentTables, ChainsMayLackTheirFirstRow) {
  const std::string head = "GPUs,Epoch time (s),Speedup,Efficiency\n2,52,1.9,95%\n4,27,3.7,92.5%\n";
  EXPECT_THAT(said_of(head + "8,14.2,7.0,87.5%\n"),
              Not(Contains(testing::ContainsRegex("^(error|warning)"))));
  EXPECT_THAT(said_of(head + "8,14.2,14.0,87.5%\n"),
              Contains(is("warning ratio.speedup", "a speedup of 14.0")));
}

TEST(StudentTables, OneRunHasOneAccuracy) {
  const std::string head = "run,nodes,GPUs,Accuracy\n";
  EXPECT_THAT(said_of(head + "two nodes,2,6,0.9906\nx,2,8,0.9879\ntwo nodes,2,6,0.9905\n"),
              Contains(is("warning compare.conflict", "0.9905 here and 0.9906 in line 2")));
  EXPECT_THAT(said_of(head + "two nodes,2,6,0.9906\nx,2,8,0.9879\nagain,2,6,0.9905\n"), IsEmpty());
}

TEST(StudentTables, BestIsOfAsManyEpochs) {
  const auto said = said_of(
      "run,GPUs,epochs,Accuracy,best,test images\na,2,21,0.9922,,10000\nb,6,40,0.9905,yes,10000\nc,8,40,0.9879,,10000\n");
  EXPECT_THAT(said, Contains(is("warning accuracy.noise", "0.9905 against 0.9879 of c")));
}

TEST(StudentTables, TheBestMayBeCalledSo) {
  EXPECT_THAT(
      said_of(
          "GPUs,Accuracy,test images,remark\n1,0.9854,10000,\n2,0.9922,10000,best accuracy\n4,0.9920,10000,\n"),
      Contains(is("warning accuracy.noise", "0.9922 against 0.9920")));
}

TEST(StudentTables, ALoaderShowsBesideAResidual) {
  const std::string facts = "# covers = \"data compute communication\"\n";
  const std::string rows =
      "GPUs,Batch per GPU,Epoch time (s),Compute (s),Communication (s),communication_is\n1,128,14.73,,,\n"
      "2,128,17.59,7.365,10.225,exposed\n4,128,14.82,3.6825,11.1375,exposed\n";
  EXPECT_THAT(said_of(facts + rows), Contains(is("warning input.ceiling", "is a residual")));
  EXPECT_THAT(said_of(rows), Contains(is("note input.ceiling")));
}

TEST(StudentTables, NoLoaderIsBlamedForCommunication) {
  const auto said = [](const std::string& compute, const std::string& exposed) {
    const std::string parts = compute + "," + exposed + ",exposed\n";
    return said_of(
        "GPUs,Batch per GPU,Epoch time (s),Compute (s),Communication (s),communication_is\n1,128,14.73,,,\n2,128,14.70," +
        parts + "4,128,14.82," + parts);
  };
  for (const char* compute : {"", "5.5"}) {
    EXPECT_THAT(said(compute, "0.2"), Contains(is("note input.ceiling")));
    EXPECT_THAT(said(compute, "9"), Not(Contains(is("note input.ceiling"))));
  }
}

TEST(StudentTables, WorkersThatAreSlowerAreNotBetter) {
  EXPECT_THAT(
      said_of("GPUs,Batch per GPU,Epoch time (s),remark\n1,64,100.0,\n2,64,135.0,training is faster\n"),
      Contains(is("warning scaling.slower", "0.74 times as fast, but the table says 'training is faster'")));
  EXPECT_THAT(said_of("GPUs,Batch per GPU,Epoch time (s),remark\n1,64,100.0,\n2,64,135.0,slower than one\n"),
              Not(Contains(is("warning scaling.slower"))));
}

TEST(StudentTables, AClaimOfSpeedNeedsARatio) {
  const auto said = [](const std::string& claim) {
    return said_of("GPUs,Batch per GPU,Throughput (img/s),rate_of,remark\n1,64,400,all,\n2,64,772,all," +
                   claim + "\n");
  };
  for (const char* const claim :
       {"training with 2 GPUs is generally faster", "effectively doubling at batch 64",
        "the second GPU doubles the speed", "it scales well to 2 GPUs", "2 GPUs are 64 faster"})
    EXPECT_THAT(said(claim), Contains(is("note protocol.no-figure", "the rates give 772 / 400 = 1.93")))
        << claim;
  for (const char* const claim : {"1.9x faster", "a speedup of 2", "93 % efficient scaling",
                                  "2 times as fast", "faster by a factor of 2", "runs on 2 GPUs"})
    EXPECT_THAT(said(claim), Not(Contains(is("note protocol.no-figure")))) << claim;
}

TEST(StudentTables, ARatioNeedsItsNumbersOfWorkers) {
  EXPECT_THAT(said_of("run,Training time,Speedup\none,9:41,\nseveral,1:03,9.2\n"),
              Contains(is("error ratio.no-workers",
                          "581 / 63 = 9.22, which is not super-linear from 10 workers on")));
  EXPECT_THAT(
      said_of("run,workers,time_s,time_of,claimed_speedup\nbase,,100.0,epoch,\nn4,4,29.0,epoch,3.45\n"),
      Contains(is("warning ratio.no-workers", "over base, which does not say on how many it ran")));
  EXPECT_THAT(said_of("run,claimed_speedup,claimed_efficiency\na,3.40,0.85\n"),
              Contains(is("error ratio.no-workers", "with the efficiency of 0.85 that would be 4")));
}

TEST(StudentTables, ALearningRateThatGrewIsSaid) {
  EXPECT_THAT(
      said_of("run,GPUs,Training time,Epoch time (s),Learning rate,Accuracy\n1 GPU,1,9:41,56,0.0005,\n"
              "4 GPUs,4,1:14,,0.1,0.9869\n"),
      Contains(is("warning accuracy.learning-rate", "200 times that of 1 GPU (0.1 against 0.0005)")));
  EXPECT_THAT(said_of("GPUs,Step time (ms),lr,remark\n1,250,0.0005,\n,60,0.1,accuracy stays the same\n"),
              Contains(is("warning accuracy.learning-rate", "the batches and the workers are not stated")));
}

TEST(StudentTables, TwoTablesOfOneFileMayDisagree) {
  const std::string first =
      "| GPUs | Batch per GPU | Epoch time (s) |\n|---|---|---|\n| 1 | 128 | 14.73 |\n| 2 | 128 | 17.59 |\n";
  const std::string second =
      "\nTable 2\n\n| GPUs | Batch per GPU | Epoch time (s) |\n|---|---|---|\n| 1 | 128 | {} |\n| 1 | 512 | 5.82 |\n";
  EXPECT_THAT(said_of(first + fmt::format(fmt::runtime(second), "5.99")),
              Contains(is("warning compare.conflict", "time_s is 5.99 here and 14.73 in t.csv:3")));
  EXPECT_THAT(said_of(first + fmt::format(fmt::runtime(second), "14.9")),
              Not(Contains(is("warning compare.conflict"))));
}

TEST(StudentTables, RatiosAreHeldAgainstEachOther) {
  // Over one worker that is not in the table, or over the first row.
  EXPECT_THAT(said_of("GPUs,Speedup,Efficiency\n2,1.90,95%\n4,3.40,85%\n"), IsEmpty());
  EXPECT_THAT(said_of("GPUs,Speedup,Efficiency\n8,1.00,100%\n16,1.90,95%\n"), IsEmpty());
  EXPECT_THAT(said_of("GPUs,Speedup,Efficiency\n2,1.90,95%\n4,3.40,95%\n"),
              Contains(is("error ratio.claims", "which is 0.85")));
}

TEST(StudentTables, SayWhenNothingWasCompared) {
  EXPECT_EQ(check_table(table::read_table("GPUs,time\n1,100\n2,55\n", "t.csv")).compared, 0U);
  EXPECT_GT(check_table(table::read_table("GPUs,Epoch time (s),Speedup\n1,100.0,\n2,55.0,1.82\n", "t.csv"))
                .compared,
            0U);
}

TEST(StudentTables, OneMistakeOfManyRowsIsOne) {
  const auto table = table::read_table(
      "GPUs,Batch per GPU,Epoch time (s),Speedup\n1,32,25.86,\n2,32,36.93,1.40\n4,32,27.25,3.80\n1,128,14.73,\n"
      "2,128,17.59,1.67\n4,128,14.82,3.97\n",
      "t.csv");
  const auto all = check_table(table);
  const auto result = one_per_mistake(all);
  EXPECT_EQ(all.number_of(Severity::error), 4U);
  ASSERT_EQ(result.number_of(Severity::error), 1U);
  EXPECT_EQ(result.findings.front().also.size(), 3U);
  EXPECT_EQ(result.findings.front().also.back().printed, "3.97");
}

}  // namespace
}  // namespace paceline::check
