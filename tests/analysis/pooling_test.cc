/// Which records are one cell, and that each record is in one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/compare/cell.h"
#include "golden/records.h"

namespace paceline::analysis {
namespace {

using golden::make_record;
using golden::make_skipped;
using measure::Record;

// "128, 2 workers, 37.5 ms [28.2, 56.1]": threads, processes of a host and processes of two hosts.
TEST(Cells, JoinNoWorkersThatAreJoinedOtherwise) {
  std::vector<Record> records;
  for (const char* hosts : {"", "aa", "ab"})
    for (int repeat = 0; repeat < 2; ++repeat) {
      auto& record = records.emplace_back(make_record({.workers = 2, .repeat = repeat}));
      if (*hosts == 0) continue;
      record.communication.communicator = "mpi";
      record.communication.processes = 2;
      for (std::size_t rank = 0; rank < 2; ++rank) record.ranks[rank].host = std::string(1, hosts[rank]);
    }
  const auto cells = make_cells(records);
  ASSERT_EQ(cells.size(), 3U);
  for (const Cell& cell : cells) EXPECT_EQ(cell.records.size(), 2U);
  EXPECT_EQ(cells[0].label, "b 128, N 2, threads of one process");
  EXPECT_EQ(cells[1].label, "b 128, N 2, 2 processes");
  EXPECT_EQ(cells[2].label, "b 128, N 2, 2 processes on 2 nodes");
}

TEST(Cells, SayOfWhatAloneTellsThemApartThatItDoes) {
  std::vector<Record> records{make_record({.workers = 2}), make_record({.workers = 2})};
  records[1].environment.instructions = {"avx2"};
  records[1].environment.cores = 64;
  const auto cells = make_cells(records);
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_EQ(cells[0].label, "b 128, N 2, cores 2") << "the first difference is enough";
  EXPECT_EQ(cells[1].label, "b 128, N 2, cores 64");
}

// Of two skipped repeats with two reasons the second was nowhere.
TEST(Cells, KeepEveryRecordAndEveryReason) {
  std::vector<Record> records{
      make_skipped({.workers = 4}, "too slow"), make_skipped({.workers = 4}, "too large"),
      make_skipped({.workers = 4}, "too slow"), make_record({}), make_skipped({.repeat = 1}, "diverged")};
  records.back().status = "failed";
  const auto cells = make_cells(records);
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_EQ(cells[0].reason, "too slow");
  EXPECT_THAT(cells[0].lost_repeats, testing::ElementsAre("too large"));
  EXPECT_THAT(cells[0].lost, testing::ElementsAre(&records[1], &records[2]));
  EXPECT_THAT(cells[1].lost, testing::ElementsAre(&records[4]));
}

TEST(Cells, GiveAFailedRepeatToThoseThatRanAsItDid) {
  std::vector<Record> records{make_record({.workers = 2}), make_record({.workers = 2}),
                              make_skipped({.workers = 2, .repeat = 1}, "a peer was lost")};
  for (const std::size_t i : {1, 2}) {
    records[i].communication.processes = 2;
    records[i].communication.library = "Open MPI";
  }
  records[2].status = "failed";
  const auto cells = make_cells(records);
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_THAT(cells[0].lost, testing::IsEmpty());
  EXPECT_THAT(cells[1].lost, testing::ElementsAre(&records[2]));
}

}  // namespace
}  // namespace paceline::analysis
