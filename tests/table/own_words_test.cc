#include "table/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::table {
namespace {

using testing::HasSubstr;

constexpr const char* kLab =
    "GPUs,Batch size,Epoch time (s),Throughput (img/s),Speedup,Efficiency\n"
    "1,128,30.2,1655,1.0,100%\n"
    "2,256,16.1,\"3,105\",1.88x,94%\n"
    "4,512,9.0,5555,3.36x,84%\n";

TEST(OwnWords, BecomeColumnsAndAreSaid) {
  ASSERT_TRUE(looks_like_table(kLab));
  const Table table = read_table(kLab, "lab.csv");
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_EQ(table.rows[1].line, 3U);
  EXPECT_EQ(table.rows[1].text("workers"), "2");
  EXPECT_EQ(table.rows[1].text("global_batch"), "256") << "it grows with the GPUs";
  EXPECT_EQ(table.rows[1].text("time_of"), "epoch");
  EXPECT_EQ(table.rows[1].number("rate_per_s")->value, 3105);
  EXPECT_EQ(table.rows[1].number("claimed_speedup")->value, 1.88);
  EXPECT_DOUBLE_EQ(table.rows[1].number("claimed_efficiency")->value, 0.94);
  ASSERT_EQ(table.notes.size(), 1U);
  EXPECT_THAT(table.notes[0],
              HasSubstr("read as: GPUs = workers, Batch size = global_batch, Epoch time (s) = "
                        "time_s with time_of = epoch"));
}

TEST(OwnWords, ReadMarkdownAndUnits) {
  const char* const text =
      "| GPUs | Time | Speedup |\n"
      "|---|---|---|\n"
      "| 1 | 120 min | 1.0x |\n"
      "| 4 | 35 min | 3.4x |\n"
      "\nand more text\n";
  ASSERT_TRUE(looks_like_table(text));
  const Table table = read_table(text, "readme.md");
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].line, 3U);
  EXPECT_EQ(table.rows[0].number("time_s")->value, 7200);
  // 120 min is 119.5 to 120.5: half a unit of the seconds must not claim more.
  EXPECT_GE(table.rows[0].number("time_s")->half_unit, 30);
  EXPECT_FALSE(table.rows[0].knows("time_of"));
}

TEST(OwnWords, DropEmptyColumnsOfASpreadsheet) {
  const char* const text = "run,workers,time_s,time_of,,\nn1,1,100.0,epoch,,\n,,,,,\nn2,2,52.5,epoch,,\n";
  const Table table = read_table(text, "excel.csv");
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[1].line, 4U);
}

TEST(OwnWords, KeepABatchThatMayBeEither) {
  const Table table = read_table("GPUs,batch,epoch_time_s\n1,128,100.0\n2,128,52.0\n", "t.csv");
  EXPECT_EQ(table.rows[1].text("batch"), "128");
  EXPECT_EQ(table.rows[1].text("time_of"), "epoch");
}

TEST(OwnWords, KeepUnknownColumnsAsSettings) {
  const Table table = read_table("GPUs,Step time (ms),Framework\n1,250,torch 2\n2,260,torch 2\n", "t.csv");
  EXPECT_EQ(table.rows[0].settings.at("framework"), "torch 2");
  EXPECT_DOUBLE_EQ(table.rows[0].number("time_s")->value, 0.25);
  EXPECT_THAT(table.notes[0], HasSubstr("'Framework' is kept as settings"));
}

TEST(OwnWords, AreNotSeenInOtherFiles) {
  EXPECT_FALSE(in_our_columns("run,workers,time_s\na,1,2\n")) << "a table of ours";
  EXPECT_FALSE(in_our_columns("epoch,loss\n1,2\n"));
  EXPECT_FALSE(in_our_columns("GPUs,colour\n1,red\n")) << "no figure";
  EXPECT_FALSE(in_our_columns("GPUs,Speedup\n1\n")) << "the reader says which row is too short";
  EXPECT_FALSE(in_our_columns("GPUs,Time,Duration\n1,2,3\n")) << "two columns of one meaning";
  EXPECT_FALSE(in_our_columns("{\"a\": 1}"));
  EXPECT_FALSE(in_our_columns(""));
  EXPECT_FALSE(in_our_columns(",,\n,,\n")) << "nothing but blanks";
  EXPECT_FALSE(in_our_columns("|  |  |\n|---|---|\n|  |  |\n"));
}

}  // namespace
}  // namespace paceline::table
