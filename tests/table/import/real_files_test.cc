/// What files of public projects showed that the documentation of their formats does not say: several tests
/// in one log, quoted logs, traces that name a version of NCCL, traces without a device.

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "table/import/fixtures.h"
#include "table/import/import.h"

namespace paceline::table {
namespace {

namespace fs = std::filesystem;

class RealFiles : public testing::Test {
 protected:
  RealFiles() : file_(fs::temp_directory_path() / fmt::format("paceline-real-{}", ::getpid())) {}
  ~RealFiles() override { fs::remove(file_); }

  Table read(const std::string& text) {
    std::ofstream(file_, std::ios::binary) << text;
    return import_files(std::vector{file_}, {}).front();
  }
  fs::path file_;
};

TEST_F(RealFiles, NcclTextOfSeveralTestsKeepsThemApart) {
  const auto test = [](const char* name) {
    return fmt::format("# Collective test starting: {0}_perf\n{1}# Collective test concluded: {0}_perf\n#\n",
                       name, fixtures::nccl_text());
  };
  const auto table = read(test("all_reduce") + test("alltoall") + test("all_reduce"));
  ASSERT_EQ(table.rows.size(), 15U);
  for (const auto& row : table.rows) EXPECT_EQ(row.value("workers"), 2) << row.name();
  EXPECT_EQ(table.rows[0].value("repeat"), 1);
  EXPECT_EQ(table.rows[0].settings.at("collective"), "all_reduce");
  EXPECT_TRUE(table.rows[0].knows("claimed_bandwidth"));
  EXPECT_FALSE(table.rows[5].knows("repeat"));
  EXPECT_EQ(table.rows[5].settings.at("collective"), "alltoall");
  EXPECT_FALSE(table.rows[5].knows("claimed_bandwidth")) << "the factor of busbw is another one";
  EXPECT_EQ(table.rows[9].text("run"), "average");
  EXPECT_EQ(table.rows[10].value("repeat"), 2);
}

TEST_F(RealFiles, NcclTextThatWasQuotedWithIndentsIsRead) {
  const auto text = fixtures::nccl_text();
  std::string quoted;
  for (const char one : text) quoted += one == '\n' ? "\n   " : std::string(1, one);
  const auto table = read("   " + quoted);
  ASSERT_EQ(table.rows.size(), 5U);
  EXPECT_EQ(table.rows[0].value("workers"), 2);
}

TEST_F(RealFiles, KinetoThatNamesTheVersionOfNcclIsATrace) {
  auto text = fixtures::kineto(0, 2);
  const auto at = text.find("\"world_size\"");
  ASSERT_NE(at, std::string::npos);
  text.insert(at, "\"nccl_version\": \"2.27.5\", ");
  EXPECT_EQ(read(text).rows[0].text("program"), "PyTorch");
}

TEST_F(RealFiles, KinetoWithoutADeviceLeavesItsPartsUnknown) {
  const auto table = read(
      R"({"schemaVersion":1,"traceEvents":[)"
      R"({"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":1,"tid":1,"ts":0,"dur":1000},)"
      R"({"ph":"X","cat":"cpu_op","name":"enumerate(DataLoader)#_X.__next__","pid":1,"tid":1,"ts":0,"dur":90}]})");
  ASSERT_EQ(table.rows.size(), 1U);
  for (const Column part : {Column("compute_s"), Column("communication_s"), Column("data_wait_s"),
                            Column("other_s"), Column("update_s")})
    EXPECT_TRUE(table.rows[0].is_unknown(part)) << part.name();
  EXPECT_NEAR(*table.rows[0].value("not_attributed_s"), 1e-3, 1e-12);
}

}  // namespace
}  // namespace paceline::table
