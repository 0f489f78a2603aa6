#include "analysis/steps/by_worker.h"

#include <gtest/gtest.h>

#include "analysis/compare/cell.h"
#include "golden/records.h"

namespace paceline::analysis {
namespace {

using golden::make_record;
using measure::Phase;
using measure::Record;

double& phase(measure::RankRecord& rank, Phase which) { return rank.phases[static_cast<std::size_t>(which)]; }

/// Two workers of which rank 1 takes `lead` seconds longer for its forward pass, and rank 0 waits for it.
Record uneven(int repeat = 0, double lead = 0.1) {
  auto record = make_record({.workers = 2,
                             .repeat = repeat,
                             .forward = 0.4,
                             .backward = 0.5,
                             .update = 0.1,
                             .exposed_transfer = 0.05,
                             .exposed_wait = lead,
                             .data_wait = 0,
                             .copy = 0,
                             .other = 0,
                             .jitter = {1, 1, 1, 1}});
  phase(record.ranks[1], Phase::forward) += 4 * lead;
  phase(record.ranks[1], Phase::exposed_wait) -= 4 * lead;
  return record;
}

TEST(ByWorker, SharesOutAStepAndNamesTheSlowest) {
  const std::vector<Record> records{uneven(0), uneven(1)};
  const auto cells = make_cells(records);
  ASSERT_EQ(cells.size(), 1u);
  const auto cell = by_worker(cells[0]);
  ASSERT_TRUE(cell.has_value());
  ASSERT_EQ(cell->workers.size(), 2u);
  const auto& [first, second] = std::pair(cell->workers[0], cell->workers[1]);
  EXPECT_NEAR(first.own_s(), 1.0, 1e-12);
  EXPECT_NEAR(first.waiting_s, 0.1, 1e-12);
  EXPECT_NEAR(first.transfer_s, 0.05, 1e-12);
  EXPECT_NEAR(first.step_s(), 1.15, 1e-12);
  EXPECT_NEAR(first.utilisation(), 1.0 / 1.15, 1e-12);
  EXPECT_NEAR(second.own_s(), 1.1, 1e-12);
  EXPECT_NEAR(second.waiting_s, 0, 1e-12);
  EXPECT_EQ(cell->slowest, 1u);
  EXPECT_EQ(cell->next, 0u);
  EXPECT_NEAR(cell->lead_s.median, 0.1, 1e-12);
  EXPECT_TRUE(cell->is_told_apart()) << "both repeats say the same";
  EXPECT_NEAR(cell->imbalance, 1.1 / 1.05 - 1, 1e-12);
}

// Leads of 10 and 30 hundredths: with one degree of freedom they do not exclude that there is none.
TEST(ByWorker, TellsTheSlowestApartByTheSpreadOverRepeats) {
  const std::vector<Record> records{uneven(0), uneven(1, 0.3)};
  const auto cells = make_cells(records);
  const auto cell = by_worker(cells[0]);
  ASSERT_TRUE(cell.has_value());
  EXPECT_NEAR(cell->lead_s.median, 0.2, 1e-12);
  EXPECT_LT(cell->lead_s.low, 0);
  EXPECT_FALSE(cell->is_told_apart());
  const std::vector<Record> one{uneven(0)};
  const auto alone = make_cells(one);
  EXPECT_FALSE(by_worker(alone[0])->is_told_apart());
}

TEST(ByWorker, TakesMemoryFromTheProcessOfEachRank) {
  auto record = uneven();
  record.communication.processes = 2;
  for (int rank = 0; rank < 2; ++rank) {
    auto& one = record.ranks[static_cast<std::size_t>(rank)];
    one.process = rank;
    one.host = rank == 0 ? "a" : "b";
    one.peak_bytes = 100 + rank;
    one.bytes_sent = 40 * (rank + 1);
    one.bytes_received = 0;
  }
  const std::vector records{record};
  const auto cells = make_cells(records);
  const auto cell = by_worker(cells[0]);
  ASSERT_TRUE(cell.has_value());
  EXPECT_EQ(cell->workers[1].process, 1);
  EXPECT_EQ(cell->workers[1].host, "b");
  EXPECT_EQ(cell->workers[0].peak_bytes, 100);
  EXPECT_EQ(cell->workers[1].peak_bytes, 101);
  EXPECT_EQ(cell->workers[1].bytes_sent, 20) << "of 4 steps";
  EXPECT_EQ(cell->workers[1].bytes_received, 0);
}

TEST(ByWorker, OfOneProcessHasItsMemoryOnce) {
  const std::vector records{uneven()};
  const auto cells = make_cells(records);
  const auto cell = by_worker(cells[0]);
  ASSERT_TRUE(cell.has_value());
  EXPECT_EQ(cell->workers[0].peak_bytes, records[0].memory.peak_bytes);
  EXPECT_EQ(cell->workers[0].bytes_sent, std::nullopt) << "a record of before this was counted";
}

TEST(ByWorker, OfProcessesInOldRecordsDoesNotKnowTheMemory) {
  auto record = uneven();
  record.communication.processes = 2;
  for (int rank = 0; rank < 2; ++rank) record.ranks[static_cast<std::size_t>(rank)].host = "a";
  const std::vector records{record};
  const auto cells = make_cells(records);
  const auto cell = by_worker(cells[0]);
  ASSERT_TRUE(cell.has_value());
  EXPECT_EQ(cell->workers[1].peak_bytes, std::nullopt) << "it is that of process 0 alone";
}

TEST(ByWorker, IsNothingOfOneWorker) {
  const std::vector records{make_record({})};
  const auto cells = make_cells(records);
  EXPECT_FALSE(by_worker(cells[0]).has_value());
}

}  // namespace
}  // namespace paceline::analysis
