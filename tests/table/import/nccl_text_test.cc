/// Logs with the text of nccl-tests as people post them: behind the prefixes of launchers and lines of NCCL,
/// with several runs mixed, with ranks missing.

#include "table/import/import.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "table/import/files.h"
#include "table/import/nccl_lines.h"

namespace paceline::table {
namespace {

using fixtures::lines_of;
using fixtures::mixed;
using fixtures::text_of;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class NcclText : public ImportedFiles {};

TEST_F(NcclText, CountsRanksAndNotTheirLines) {
  const auto table = read(mixed(lines_of({.ranks = 8}), lines_of({.ranks = 8, .host = "node-b", .us = 101})));
  ASSERT_EQ(table.rows.size(), 8U) << "and no average, of which nobody knows whose it is";
  for (const auto& row : table.rows) EXPECT_EQ(row.value("workers"), 8) << row.name();
  EXPECT_EQ(table.rows[0].value("repeat"), 1);
  EXPECT_EQ(table.rows[2].value("repeat"), 2);
  EXPECT_THAT(table.notes,
              Contains(HasSubstr("each rank is named 2 times: these are 2 runs of 8 workers each and not "
                                 "one, as where nccl-tests were built without MPI=1")));
}

TEST_F(NcclText, ReadsMixedRunsOfDifferentSizes) {
  const auto table = read(mixed(lines_of({.ranks = 8}), lines_of({.ranks = 4, .host = "node-b"})));
  for (const auto& row : table.rows) EXPECT_FALSE(row.knows("workers")) << row.name();
  EXPECT_THAT(table.notes, Contains(HasSubstr("runs of different sizes are mixed")));
}

TEST_F(NcclText, MissesARankThatNoLineNames) {
  auto lines = lines_of({.ranks = 4});
  std::erase_if(lines, [](const std::string& line) { return line.find("Rank  2") != std::string::npos; });
  const auto table = read(text_of(lines));
  EXPECT_FALSE(table.rows[0].knows("workers"));
  EXPECT_THAT(table.notes, Contains(HasSubstr("no line names rank 2")));
}

TEST_F(NcclText, TellsRunsApartThatFollowEachOther) {
  const auto table = read(text_of(lines_of({})) + text_of(lines_of({.us = 102})));
  ASSERT_EQ(table.rows.size(), 10U);
  EXPECT_EQ(table.rows[0].value("repeat"), 1);
  EXPECT_EQ(table.rows[4].text("run"), "average");
  EXPECT_EQ(table.rows[9].value("repeat"), 2);
}

TEST_F(NcclText, IsFoundBehindManyLinesOfNccl) {
  auto lines = lines_of({});
  std::vector<std::string> debug;
  for (int i = 0; i < 3000; ++i)
    debug.push_back(
        fmt::format("node-a:4000:4100 [0] NCCL INFO Channel {:02}/0 : 0[0] -> 1[1] via P2P/CUMEM/read", i));
  const auto plain = to_csv(read(text_of(lines)));
  lines.insert(lines.begin(), debug.begin(), debug.end());
  const auto table = read(text_of(lines));
  EXPECT_EQ(to_csv(table), plain);
  EXPECT_EQ(table.rows.front().line, 3000U + 8U);
}

TEST_F(NcclText, IsReadBehindAnyPrefix) {
  const auto plain = to_csv(read(text_of(lines_of({}))));
  for (const std::string prefix :
       {"[1,0]<stdout>:", "[prterun-a-very-long-host-name-of-a-cluster-12345@1,0]<stdout>: ", "0: ", "[0] ",
        "launcher-1  | ", "[pod/nccl-launcher-x7/mpi] ", "2025-03-11T10:22:33.123456789Z ",
        "Tue Mar 11 10:22:33 2025[1,0]<stdout>:", "node-a: ", "> ", "> > ", "\x1b[36mmpi-0 |\x1b[0m ",
        "Mar 11 10:22:33 node-a nccl[4000]: ", "(WorkerDict pid=7, ip=10.0.0.3) "})
    EXPECT_EQ(to_csv(read(text_of(lines_of({}), prefix))), plain) << prefix;
  // Clocks and hosts differ from line to line.
  std::string text;
  int second = 10;
  for (const auto& line : lines_of({})) {
    text += fmt::format("10:22:{} host{} {}\r\n", second, second % 3, line);
    ++second;
  }
  EXPECT_EQ(to_csv(read(text)), plain);
}

TEST_F(NcclText, KeepsTheColumnsThatTellRowsApart) {
  auto lines = lines_of({});
  const auto others = lines_of({.redop = "max", .us = 130});
  lines.insert(lines.end() - 2, others.end() - 4, others.end() - 2);
  std::erase_if(lines, [](const std::string& line) { return line.find("Avg") != std::string::npos; });
  const auto table = read(text_of(lines));
  ASSERT_EQ(table.rows.size(), 8U);
  EXPECT_EQ(table.rows[0].settings.at("redop"), "sum");
  EXPECT_EQ(table.rows[4].settings.at("redop"), "max");
  EXPECT_FALSE(table.rows[0].knows("repeat"));
}

TEST_F(NcclText, SaysWhatItDidNotUnderstand) {
  auto lines = lines_of({});
  std::erase_if(lines, [](const std::string& line) { return line.find("float") != std::string::npos; });
  EXPECT_THAT(error_of(text_of(lines)),
              AllOf(HasSubstr("the log ends; was the test ended early?"), HasSubstr("log:6:")));
  lines.insert(lines.begin() + 7, "node-a: Test NCCL failure common.cu:961 'unhandled cuda error'");
  EXPECT_THAT(error_of(text_of(lines)),
              AllOf(HasSubstr("the next line is 'node-a: Test NCCL failure"), Not(HasSubstr("was cut"))));
  lines = lines_of({});
  lines[7].resize(40);
  EXPECT_THAT(error_of(text_of(lines)),
              AllOf(HasSubstr("log:8: there are"), HasSubstr("figures under 13 columns")));
}

}  // namespace
}  // namespace paceline::table
