#include "table/table.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

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

TEST(OwnWords, ReadPartsAndBandwidthWithTheirUnits) {
  const Table table = read_table(
      "GPUs,Epoch time (s),Compute (ms),Communication (s),Bandwidth (GB/s),Params\n1,10.0,,,,11.17M\n"
      "2,5.5,5200,0.31,4.34,11.17M\n",
      "t.csv");
  EXPECT_DOUBLE_EQ(table.rows[1].number("compute_s")->value, 5.2);
  EXPECT_DOUBLE_EQ(table.rows[1].number("communication_s")->value, 0.31);
  EXPECT_EQ(table.rows[1].text("bandwidth_unit"), "GB/s");
  EXPECT_DOUBLE_EQ(table.rows[1].number("parameters")->value, 11.17e6);
  EXPECT_GE(table.rows[1].number("parameters")->half_unit, 5000);
}

TEST(OwnWords, ReadClocksCountsAndPercent) {
  const Table table = read_table(
      "# GPUs;Training time;Efficiency (%);Accuracy\n1 GPU;9:41;100;98.27\n4 GPUs;1:02:03;95;99.03\n",
      "t.csv");
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].value("time_s"), 581.0);
  EXPECT_EQ(table.rows[1].value("time_s"), 3723.0);
  EXPECT_EQ(table.rows[1].value("workers"), 4.0);
  EXPECT_EQ(table.rows[1].text("claimed_efficiency"), "0.95");
  EXPECT_DOUBLE_EQ(*table.rows[0].value("accuracy"), 0.9827);
}

TEST(OwnWords, DecideByValuesWhatScalingIs) {
  const auto column = [](const std::string& head, const std::vector<std::string>& cells) {
    const std::string text = "GPUs;images/s;" + head + "\n1;1655;" + cells[0] + "\n2;3112;" + cells[1] +
                             "\n4;6025;" + cells[2] + "\n";
    const Table table = read_table(text, "t.csv");
    for (const char* const name : {"scaling", "claimed_efficiency", "claimed_speedup", "claim"})
      if (table.rows[1].knows(*Column::find(name)))
        return fmt::format("{} {}", name, table.rows[1].text(*Column::find(name)));
    return std::string("nothing");
  };
  EXPECT_EQ(column("Scaling", {"100%", "94%", "91%"}), "claimed_efficiency 0.94");
  EXPECT_EQ(column("Scaling (%)", {"100", "94", "91"}), "claimed_efficiency 0.94");
  EXPECT_EQ(column("Scaling", {"100", "94", "91"}), "claimed_efficiency 94");
  EXPECT_EQ(column("Scaling factor", {"1.00", "0.94", "0.91"}), "claimed_efficiency 0.94");
  EXPECT_EQ(column("scaling", {"1.00", "0.94", "0.91"}), "claimed_efficiency 0.94");
  EXPECT_EQ(column("Scaling factor", {"1.00", "1.88", "3.64"}), "claimed_speedup 1.88");
  EXPECT_EQ(column("Scaling", {"100%", "188%", "364%"}), "claimed_speedup 1.88");
  EXPECT_EQ(column("Scaling", {"Weak", "Weak", "weak scaling"}), "scaling weak");
  EXPECT_EQ(column("Scaling", {"", "good", "poor"}), "claim good");
  EXPECT_EQ(read_table("GPUs,Epoch time (s),Scaling\n1,100.0,1.00\n2,119.0,0.84\n", "t.csv")
                .rows[1]
                .text("claimed_speedup"),
            "0.84")
      << "the times say so";
}

TEST(OwnWords, ReadClocksAsTheHeadSays) {
  const auto time = [](const std::string& head, const std::string& cell) {
    return *read_table("GPUs," + head + "\n4," + cell + "\n", "t.csv").rows[0].number("time_s");
  };
  for (const char* const head : {"Training time (h)", "Training time [h:mm]", "Training time (hh:mm)"}) {
    const Number known_to_a_minute = time(head, "0:13");
    EXPECT_GE(known_to_a_minute.half_unit, 30) << head;
    EXPECT_NEAR(known_to_a_minute.value, 780, known_to_a_minute.half_unit) << head;
    EXPECT_EQ(time(head, "1:02:03").value, 3723) << head;
  }
  for (const char* const head :
       {"Training time", "Training time (min)", "Training time (mm:ss)", "Training time (h:mm:ss)"})
    EXPECT_EQ(time(head, "9:41").value, 581) << head;
}

TEST(OwnWords, ReadUnitsOrLeaveThemOut) {
  const auto value = [](const std::string& head, const std::string& cell, const char* column) {
    return *read_table("GPUs," + head + "\n4," + cell + "\n", "t.csv").rows[0].value(*Column::find(column));
  };
  EXPECT_NEAR(value("Training time (days)", "1.25", "time_s"), 1.08e5, 500);
  EXPECT_DOUBLE_EQ(value("Time (s/epoch)", "12.5", "time_s"), 12.5);
  EXPECT_DOUBLE_EQ(value("Epoch time (avg)", "12.5", "time_s"), 12.5);
  for (const char* const head : {"Throughput (k images/s)", "Throughput (kimg/s)", "Images/s (k)"})
    EXPECT_DOUBLE_EQ(value(head, "1.655", "rate_per_s"), 1655) << head;
  EXPECT_DOUBLE_EQ(value("Throughput (images/min)", "600", "rate_per_s"), 10);
  EXPECT_DOUBLE_EQ(value("Params (M),Epoch time (s)", "11.2,10", "parameters"), 11.2e6);
  const Table table =
      read_table("GPUs,Epoch time (s),Comm (%),Throughput (tokens/s)\n1,10.0,,9\n4,3.0,12,30\n", "t.csv");
  EXPECT_FALSE(table.rows[1].knows("communication_s"));
  EXPECT_FALSE(table.rows[1].knows("rate_per_s"));
  EXPECT_THAT(table.notes[0], HasSubstr("'Comm (%)' (in a unit that is not known), 'Throughput (tokens/s)' "
                                        "(in a unit that is not known) are not used"));
  EXPECT_FALSE(in_our_columns("GPUs,Epoch time (weeks)\n1,2\n"));
}

TEST(OwnWords, ReadDecimalCommasWhereCellsHaveSemicolons) {
  const Table table = read_table("GPUs;Step time (s);images/s\n1;0,125;1655,5\n2;0,131;3,105\n", "t.csv");
  EXPECT_DOUBLE_EQ(*table.rows[0].value("time_s"), 0.125);
  EXPECT_DOUBLE_EQ(*table.rows[0].value("rate_per_s"), 1655.5);
  EXPECT_DOUBLE_EQ(*table.rows[1].value("rate_per_s"), 3.105);
  EXPECT_THAT(table.notes[0], HasSubstr("commas are decimal ones"));
  EXPECT_DOUBLE_EQ(
      *read_table("run;workers;time_s;time_of\na;1;1,655;step\n", "t.csv").rows[0].value("time_s"), 1.655)
      << "in columns of ours";
  EXPECT_FALSE(read_number("0,125")) << "no thousands";
  EXPECT_FALSE(read_number("1,655.5,0")) << "a comma behind the point";
  EXPECT_THROW((void)read_table("GPUs,Step time (s)\n1,\"0,125\"\n", "t.csv"), base::Error);
}

TEST(OwnWords, MayStandInColumnsOfOurs) {
  const Table table =
      read_table("run,workers,time_s,time_of,claimed_efficiency\na,1,10.0,epoch,100%\n", "t.csv");
  EXPECT_DOUBLE_EQ(*table.rows[0].value("claimed_efficiency"), 1.0);
}

TEST(OwnWords, GiveEachTimeARow) {
  const Table table = read_table(
      "GPUs,Total time (s),Epoch time (s),Speedup,Accuracy\n1,100.0,9.0,,0.91\n4,40.0,2.5,3.6,0.92\n",
      "t.csv");
  ASSERT_EQ(table.rows.size(), 4U);
  // The claim follows from the times of epochs, and stands beside them alone.
  EXPECT_EQ(table.rows[1].text("time_of"), "epoch");
  EXPECT_EQ(table.rows[1].text("claimed_speedup"), "3.6");
  EXPECT_EQ(table.rows[3].text("time_of"), "run");
  EXPECT_EQ(table.rows[3].text("claimed_speedup"), "");
  EXPECT_EQ(table.rows[3].line, 3U);
  EXPECT_EQ(table.rows[3].text("accuracy"), "");
}

TEST(OwnWords, LeaveOutForeignFiguresAndAverages) {
  const Table table = read_table(
      "GPUs,Epoch time (s),Memory (GB),Image size\n1,100.0,10.2,32\n2,51.0,10.9,32\n1,300.0,12.0,64\nAverage,150,11,\n",
      "t.csv");
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_FALSE(table.rows[0].settings.contains("memory-(gb)"));
  EXPECT_EQ(table.rows[2].settings.at("image-size"), "64") << "it tells rows apart";
  EXPECT_THAT(table.notes[0], HasSubstr("1 line of averages or sums left out"));
}

TEST(OwnWords, ReadTheTablesOfOneFile) {
  const std::string one = "| GPUs | Epoch time |\n|---|---|\n| 1 | 10.0 |\n";
  const auto markdown = split_tables("# Lab\n\n" + one + "\nthen\n\n" + one);
  ASSERT_EQ(markdown.size(), 2U);
  EXPECT_EQ(read_table(markdown[0], "t.md").rows.at(0).line, 5U);
  EXPECT_EQ(read_table(markdown[1], "t.md").rows.at(0).line, 11U);
  const auto csv =
      split_tables("# time_of = epoch\nrun,workers,time_s\na,1,10.0\n\nrun,workers,time_s\na,1,11.0\n");
  ASSERT_EQ(csv.size(), 2U);
  EXPECT_EQ(read_table(csv[1], "t.csv").rows.at(0).text("time_of"), "epoch");
  EXPECT_EQ(split_tables("run,workers,time_s\na,1,10.0\n\nb,2,5.0\n").size(), 1U)
      << "an empty line in one table";
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
