// What cells are called, so that each is told apart from all others.

#include "analysis/compare/cell_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/compare/cell.h"
#include "golden/records.h"

namespace paceline::analysis {
namespace {

using golden::make_record;
using golden::make_skipped;
using measure::Record;

// An audit: two rows "b 64, N 4" and a remark on one of them, nobody could say which.
TEST(CellLabels, HaveInTheirLabelsWhatAloneTellsThemApart) {
  auto other = make_record({});
  other.settings["lr"] = "0.2";
  const std::vector<Record> records{make_record({}), other, make_record({.workers = 2})};
  const auto cells = make_cells(records);
  ASSERT_EQ(cells.size(), 3U);
  EXPECT_EQ(cells[0].label, "b 128, N 1, lr 0.1");
  EXPECT_EQ(cells[1].label, "b 128, N 1, lr 0.2");
  EXPECT_EQ(cells[2].label, "b 128, N 2");
}

// One of two trainings over an emulated link: a setting that only it has told nobody which was which.
TEST(CellLabels, AreToldApartByASettingThatOneOfThemLacks) {
  auto emulated = make_record({});
  emulated.settings["emulate-link"] = "latency=1ms";
  const std::vector<Record> records{make_record({}), emulated};
  const auto cells = make_cells(records);
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_EQ(cells[0].label, "b 128, N 1, no emulate-link");
  EXPECT_EQ(cells[1].label, "b 128, N 1, emulate-link latency=1ms");
}

TEST(CellLabels, KeepApartMachinesAndBuilds) {
  auto debug = make_record({.repeat = 1});
  debug.environment.build = "Debug";
  auto elsewhere = make_record({.repeat = 2});
  elsewhere.environment.cpu = "another CPU";
  const std::vector<Record> records{make_record({}), debug, elsewhere};
  EXPECT_EQ(make_cells(records).size(), 3U);
}

TEST(CellLabels, KeepApartVersionsAndLibraries) {
  auto version = make_record({.repeat = 1});
  version.environment.version = "0.1.0 (def5678)";
  auto library = make_record({.repeat = 2});
  library.environment.libraries = {"onednn 3.1"};
  const std::vector<Record> records{make_record({}), version, library};
  EXPECT_EQ(make_cells(records).size(), 3U);
}

TEST(CellLabels, SayInWhichCircumstancesTheyDiffer) {
  auto library = make_record({.repeat = 1});
  library.environment.libraries = {"onednn 3.1"};
  auto compiler = make_record({.repeat = 2});
  compiler.environment.compiler = "clang 16";
  const std::vector<Record> records{make_record({}), library, compiler};
  const auto cells = make_cells(records);
  ASSERT_EQ(cells.size(), 3U);
  EXPECT_EQ(cells[0].label, "b 128, N 1, compiler GCC 12.2.0, libraries onednn 2.6.3");
  EXPECT_EQ(cells[1].label, "b 128, N 1, compiler GCC 12.2.0, libraries onednn 3.1");
  EXPECT_EQ(cells[2].label, "b 128, N 1, compiler clang 16, libraries onednn 2.6.3");
}

// "libraries onednn 2.6.3; hwloc 2.8.0; openmp 201511, version 0.1.0 (3894ef62c1)" stood behind every name.
TEST(CellLabels, SayOfAVersionWithOtherLibrariesItsVersionAlone) {
  auto other = make_record({.repeat = 1});
  other.environment.version = "0.2.0";
  other.environment.libraries = {"onednn 3.1"};
  const std::vector<Record> records{make_record({}), other};
  EXPECT_EQ(make_cells(records)[1].label, "b 128, N 1, version 0.2.0");
}

TEST(CellLabels, SayOfWhichNoVersionIsKnown) {
  auto other = make_record({.repeat = 1});
  other.environment.version.clear();
  other.environment.libraries.clear();
  const std::vector<Record> records{make_record({}), other};
  const auto cells = make_cells(records);
  EXPECT_EQ(cells[0].label, "b 128, N 1, version 0.1.0 (abc1234)");
  EXPECT_EQ(cells[1].label, "b 128, N 1, version unknown");
}

TEST(CellLabels, AreToldApartWhereTwoWouldStandAtOnePlace) {
  std::vector<Record> records{make_record({}), make_record({.workers = 2}), make_record({.workers = 2})};
  records[1].settings["lr"] = "0.2";
  const auto apart = [&](std::initializer_list<std::int64_t> workers) {
    const auto cells = make_cells(records);
    std::vector<const Cell*> there;
    std::vector<std::pair<std::int64_t, std::int64_t>> places;
    for (const Cell& cell : cells) there.push_back(&cell);
    for (const std::int64_t number : workers) places.emplace_back(128, number);
    return cell_labels(there, places);
  };
  EXPECT_THAT(apart({1, 2, 3}), testing::Each(""));
  EXPECT_THAT(apart({1, 2, 2}), testing::ElementsAre("lr 0.1", "lr 0.2", "lr 0.1"));
  records[2].environment.version = "0.2.0";
  EXPECT_THAT(apart({1, 2, 2}),
              testing::ElementsAre("version 0.1.0 (abc1234)", "version 0.1.0 (abc1234)", "version 0.2.0"));
}

TEST(CellLabels, KeepApartModelsOfOneNameAndSayWhichIsWhich) {
  std::vector<Record> records{make_record({.repeat = 0}), make_record({.repeat = 1})};
  records[1].model.training_flops /= 2;
  const auto cells = make_cells(records);
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_EQ(cells[0].label, "b 128, N 1, FLOPs a sample 3340000000");
  EXPECT_EQ(cells[1].label, "b 128, N 1, FLOPs a sample 1670000000");
}

TEST(CellLabels, AreNamedByTheGlobalBatchWhereWorkersDoNotDivideIt) {
  auto odd = make_skipped({.scaling = "strong", .workers = 3, .local_batch = 10}, "32 is no multiple of 3");
  odd.global_batch = 32;
  EXPECT_EQ(make_cells({&odd, 1})[0].label, "B 32, N 3");
}

}  // namespace
}  // namespace paceline::analysis
