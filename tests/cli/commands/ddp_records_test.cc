/// A run of paceline_ddp.py as a record in memory: it contradicts itself nowhere, and analysis finds the
/// steps, what they wait for, and the buckets.

#include <gmock/gmock.h>

#include "analysis/compare/cell.h"
#include "analysis/steps/step_lines.h"
#include "cli/commands/commands.h"
#include "table/import/files.h"
#include "table/import/fixtures.h"

namespace paceline::cli {
namespace {

using measure::Phase;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kRounding = 1e-12;

class DdpRecords : public table::ImportedFiles {
 protected:
  measure::Record record(int workers) {
    return record_of(table::read_ddp_run(write("run.json", table::fixtures::ddp_run(workers))), "run.json");
  }
};

TEST_F(DdpRecords, HaveTheStepsAndTheirParts) {
  const auto two = record(2);
  EXPECT_EQ(two.workers, 2);
  EXPECT_EQ(two.local_batch, 32);
  EXPECT_EQ(two.global_batch, 64);
  EXPECT_EQ(two.window.samples, 3 * 64);
  ASSERT_EQ(two.ranks.size(), 2U);
  const auto& rank = two.ranks[1];
  EXPECT_THAT(rank.step_s, ElementsAre(0.1, 0.11, 0.12));
  EXPECT_THAT(*rank.own_s, ElementsAre(DoubleNear(0.08, kRounding), DoubleNear(0.089, kRounding),
                                       DoubleNear(0.098, kRounding)));
  const auto of = [&](Phase phase) { return rank.phases[static_cast<std::size_t>(phase)]; };
  EXPECT_NEAR(of(Phase::data_wait), 0.03, kRounding);
  EXPECT_NEAR(of(Phase::forward), 0.06, kRounding);
  EXPECT_NEAR(of(Phase::backward), 0.126, kRounding);
  EXPECT_NEAR(of(Phase::exposed_wait), 0.015, kRounding);
  EXPECT_NEAR(of(Phase::exposed_transfer), 0.063 - 0.015, kRounding);
  EXPECT_NEAR(of(Phase::other), 0.33 - 0.03 - 0.06 - 0.126 - 0.063, kRounding);
}

TEST_F(DdpRecords, HaveBucketsThatLeaveOneAfterAnother) {
  const auto two = record(2);
  ASSERT_EQ(two.buckets.size(), 2U);
  EXPECT_EQ(two.buckets[0].bytes, 4000);
  EXPECT_THAT(*two.buckets[0].ready_s, ElementsAre(0.02, 0.021, 0.022));
  EXPECT_THAT(
      two.buckets[0].transfer_s,
      ElementsAre(DoubleNear(0.02, kRounding), DoubleNear(0.021, kRounding), DoubleNear(0.022, kRounding)));
  // The second is posted at 0.040, 0.041, 0.042, when the first is under way until 0.040, 0.042, 0.044.
  EXPECT_THAT(
      two.buckets[1].transfer_s,
      ElementsAre(DoubleNear(0.021, kRounding), DoubleNear(0.021, kRounding), DoubleNear(0.021, kRounding)));
  EXPECT_TRUE(record(1).buckets[1].transfer_s.empty()) << "one worker reduces nothing";
}

TEST_F(DdpRecords, AreCellsThatAnalysisUses) {
  const std::vector records{record(1), record(2)};
  const auto cells = analysis::make_cells(records);
  ASSERT_EQ(cells.size(), 2U);
  for (const auto& cell : cells) {
    EXPECT_EQ(cell.status, "complete") << cell.reason;
    EXPECT_TRUE(cell.lost.empty()) << cell.lost_repeats.front();
    EXPECT_TRUE(cell.is_timed());
    EXPECT_NEAR(cell.step_s.median, 0.11, kRounding);
  }
  const analysis::SampledSteps steps(records[1]);
  EXPECT_NEAR(steps.lines().total(), 0.11, 1e-9);
  EXPECT_TRUE(steps.knows_jitter());
  const auto buckets = analysis::bucket_times(records[1]);
  ASSERT_TRUE(buckets.has_value());
  EXPECT_NEAR(buckets->replayed_s, 0.021, 1e-9);
}

TEST_F(DdpRecords, RefuseMissingRanksAndUnevenBatches) {
  const auto error = [](const table::DdpRun& run) {
    try {
      (void)record_of(run, "run.json");
    } catch (const base::Error& refused) {
      return std::string(refused.what());
    }
    return std::string("none");
  };
  const auto whole = table::read_ddp_run(write("run.json", table::fixtures::ddp_run(2)));
  auto missing = whole;
  missing.ranks.pop_back();
  EXPECT_THAT(error(missing), HasSubstr("run.json: only 1 of 2 ranks gave their steps"));
  auto uneven = whole;
  uneven.ranks[1].samples = 16;
  EXPECT_THAT(error(uneven), HasSubstr("batches of 16 to 32"));
  EXPECT_EQ(error(whole), "none");
}

TEST_F(DdpRecords, AreOfFilesOfOneKind) {
  const auto one = write("n1.json", table::fixtures::ddp_run(1)),
             two = write("n2.json", table::fixtures::ddp_run(2)), text = write("a.csv", "run,workers\na,1\n");
  EXPECT_EQ(records_of_trainer({one, two}).size(), 2U);
  EXPECT_TRUE(records_of_trainer({text, folder_}).empty());
  EXPECT_THROW((void)records_of_trainer({one, text}), base::Error);
}

}  // namespace
}  // namespace paceline::cli
