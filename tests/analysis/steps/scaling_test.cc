#include "analysis/steps/scaling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/compare/cell.h"
#include "golden/records.h"

namespace paceline::analysis {
namespace {

using golden::make_record;
using golden::make_skipped;
using measure::Record;
using testing::HasSubstr;

/// A run whose step takes `seconds`, all of it compute.
golden::Run timed(const std::string& scaling, int workers, std::int64_t local, double seconds) {
  return {.scaling = scaling,
          .workers = workers,
          .local_batch = local,
          .forward = seconds / 2,
          .backward = seconds / 2,
          .update = 0,
          .data_wait = 0,
          .copy = 0,
          .other = 0,
          .jitter = {1, 1, 1}};
}

TEST(WeakScaling, HasTheEfficiencyOfAStepAtTheSameLocalBatch) {
  const std::vector<Record> records{make_record(timed("weak", 1, 128, 1.0)),
                                    make_record(timed("weak", 2, 128, 1.25)),
                                    make_record(timed("weak", 4, 128, 1.6))};
  const auto cells = make_cells(records);
  const auto groups = scaling(cells, Mode::weak);
  ASSERT_EQ(groups.size(), 1U);
  ASSERT_EQ(groups[0].rows.size(), 3U);
  EXPECT_EQ(groups[0].batch, 128);
  EXPECT_NEAR(groups[0].rows[1].efficiency.median, 0.8, 1e-12);
  EXPECT_NEAR(groups[0].rows[1].speedup.median, 1.6, 1e-12);
  EXPECT_NEAR(groups[0].rows[2].efficiency.median, 0.625, 1e-12);
  EXPECT_NEAR(groups[0].rows[2].speedup.median, 2.5, 1e-12);
  // Epochs of all 50,000 images: 390.625, 195.3 and 97.66 steps of 1, 1.25 and 1.6 s.
  EXPECT_NEAR(groups[0].rows[1].epoch.median, 1.6, 1e-12);
  EXPECT_NEAR(groups[0].rows[2].epoch.median, 2.5, 1e-12);
}

TEST(StrongScaling, HasTheSpeedupAtTheSameGlobalBatch) {
  const std::vector<Record> records{make_record(timed("strong", 1, 512, 4.0)),
                                    make_record(timed("strong", 2, 256, 2.5)),
                                    make_record(timed("strong", 4, 128, 1.6))};
  const auto cells = make_cells(records);
  const auto groups = scaling(cells, Mode::strong);
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].batch, 512);
  EXPECT_NEAR(groups[0].rows[1].speedup.median, 1.6, 1e-12);
  EXPECT_NEAR(groups[0].rows[1].efficiency.median, 0.8, 1e-12);
  EXPECT_NEAR(groups[0].rows[2].speedup.median, 2.5, 1e-12);
  EXPECT_NEAR(groups[0].rows[2].efficiency.median, 0.625, 1e-12);
}

TEST(Scaling, NeverMixesWeakAndStrong) {
  const std::vector<Record> records{make_record(timed("weak", 1, 128, 1.0)),
                                    make_record(timed("strong", 2, 64, 0.6))};
  const auto cells = make_cells(records);
  const auto weak = scaling(cells, Mode::weak);
  const auto strong = scaling(cells, Mode::strong);
  ASSERT_EQ(weak.size(), 1U);
  ASSERT_EQ(strong.size(), 1U);
  EXPECT_EQ(weak[0].rows.size(), 1U);
  EXPECT_EQ(strong[0].rows.size(), 1U);
  EXPECT_THAT(compare(records[0], records[1], Topic::scaling).refusals,
              testing::Contains(HasSubstr("weak scaling is never compared with strong scaling")));
}

TEST(Scaling, NamesItsBaseline) {
  const std::vector<Record> records{make_record(timed("weak", 1, 32, 1.0)),
                                    make_record(timed("weak", 2, 64, 1.0)),
                                    make_record(timed("weak", 4, 64, 1.25))};
  const auto cells = make_cells(records);
  const auto groups = scaling(cells, Mode::weak);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].baseline_name, "1 worker without any communicator");
  EXPECT_EQ(groups[1].baseline_name, "2 workers inside the communicator 'local'");
  // From 2 to 4 workers the ideal is 2, not 4.
  EXPECT_NEAR(groups[1].rows[1].efficiency.median, 0.8, 1e-12);
  EXPECT_NEAR(groups[1].rows[1].speedup.median, 1.6, 1e-12);
}

// The baseline of both is measured once, and "data-parallel" means nothing to it.
TEST(Scaling, OfWorkersByWayOfTheFirstHasTheWorkerAloneAsItsBaseline) {
  auto alone = make_record(timed("weak", 1, 64, 1.0)), joined = make_record(timed("weak", 2, 64, 1.25));
  for (Record* record : {&alone, &joined}) record->settings["parallel"] = "data-parallel";
  joined.communication.parallel = "data-parallel";
  const std::vector<Record> records{make_record(timed("weak", 1, 64, 1.0)),
                                    make_record(timed("weak", 2, 64, 1.1)), alone, joined};
  const auto cells = make_cells(records);
  EXPECT_EQ(cells.size(), 3U) << "the workers alone are repeats";
  const auto groups = scaling(cells, Mode::weak);
  ASSERT_EQ(groups.size(), 2U);
  for (const ScalingGroup& group : groups) {
    ASSERT_EQ(group.rows.size(), 2U);
    EXPECT_TRUE(group.rows[1].has_ratios);
  }
}

TEST(Scaling, HasNoRatioForACellThatWasNotMeasured) {
  const std::vector<Record> records{make_skipped(timed("weak", 1, 128, 1.0), "stopped"),
                                    make_record(timed("weak", 2, 128, 1.0)),
                                    make_skipped(timed("weak", 4, 128, 1.0), "too large")};
  const auto cells = make_cells(records);
  const auto groups = scaling(cells, Mode::weak);
  ASSERT_EQ(groups[0].rows.size(), 3U);
  EXPECT_FALSE(groups[0].rows[0].has_ratios);
  EXPECT_TRUE(groups[0].rows[1].is_baseline);
  EXPECT_FALSE(groups[0].rows[2].has_ratios);
}

TEST(Scaling, SaysWhenMoreWorkersOnlyShareTheSameCores) {
  auto one = make_record(timed("weak", 1, 128, 1.0));
  one.threads_per_worker = 2;
  one.ranks[0].cores = {0, 1};
  const std::vector<Record> records{one, make_record(timed("weak", 2, 128, 2.0))};
  const auto cells = make_cells(records);
  const auto groups = scaling(cells, Mode::weak);
  EXPECT_TRUE(groups[0].rows[1].has_ratios);
  EXPECT_TRUE(groups[0].rows[1].verdict.shares_cores);
  EXPECT_THAT(groups[0].rows[1].verdict.remarks, testing::Contains(HasSubstr("2 cores were used against 2")));
}

Record of_version(const golden::Run& run, const char* version) {
  auto record = make_record(run);
  record.environment.version = version;
  return record;
}

// The second version's speedup was over the first one's baseline: what its kernels gained was the workers'.
TEST(Scaling, ComparesWhatTwoVersionsScaledWithinEach) {
  const std::vector<Record> records{
      of_version(timed("weak", 1, 64, 1.0), "1"), of_version(timed("weak", 2, 64, 1.25), "1"),
      of_version(timed("weak", 1, 64, 0.5), "2"), of_version(timed("weak", 2, 64, 0.625), "2")};
  const auto cells = make_cells(records);
  const auto groups = scaling(cells, Mode::weak);
  ASSERT_EQ(groups.size(), 2U);
  for (const ScalingGroup& group : groups) {
    ASSERT_EQ(group.rows.size(), 2U);
    EXPECT_NEAR(group.rows[1].efficiency.median, 0.8, 1e-9);
    EXPECT_TRUE(group.rows[1].verdict.remarks.empty());
  }
  EXPECT_EQ(groups[0].circumstances, "version 1");
  EXPECT_EQ(groups[1].circumstances, "version 2");
}

TEST(Scaling, RemarksASingleCellOfAnotherVersion) {
  const std::vector<Record> records{
      of_version(timed("weak", 1, 64, 0.9), "2"), of_version(timed("weak", 1, 64, 1.0), "1"),
      of_version(timed("weak", 2, 64, 1.25), "1"), of_version(timed("weak", 2, 64, 1.0), "0")};
  const auto cells = make_cells(records);
  const auto groups = scaling(cells, Mode::weak);
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].circumstances, "");
  ASSERT_EQ(groups[0].rows.size(), 4U);
  EXPECT_EQ(groups[0].baseline->record().environment.version, "1") << "what was scaled";
  const char* const remark = "the baseline was measured by version 1, this by 0";
  EXPECT_THAT(groups[0].rows[2].verdict.remarks, testing::Not(testing::Contains(remark)));
  EXPECT_THAT(groups[0].rows[3].verdict.remarks, testing::Contains(remark));
}

// A study that an update interrupted: N = 1 before it, N = 2 after it.
TEST(Scaling, GoesOnOverAnUpdateWithARemark) {
  const std::vector<Record> records{of_version(timed("weak", 1, 64, 1.0), "1"),
                                    of_version(timed("weak", 2, 64, 1.25), "2")};
  const auto cells = make_cells(records);
  const auto groups = scaling(cells, Mode::weak);
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_TRUE(groups[0].rows[1].has_ratios);
  EXPECT_THAT(groups[0].rows[1].verdict.remarks,
              testing::Contains("the baseline was measured by version 1, this by 2"));
}

/// The same workers in as many processes of one host, or of a host each.
Record in_processes(const golden::Run& run, bool on_hosts) {
  auto record = make_record(run);
  record.communication.communicator = "mpi";
  record.communication.processes = run.workers;
  record.communication.algorithm = on_hosts ? "exchange (messages)" : "direct (memory of the host)";
  for (auto& rank : record.ranks) rank.host = on_hosts ? fmt::format("node{}", rank.rank) : "bench";
  return record;
}

// Threads, processes of a host and processes of two hosts were one row of "3 repeats", and their mean an
// answer.
TEST(Scaling, HasAGroupForEachWayOfJoiningTheWorkers) {
  std::vector<Record> records{make_record(timed("weak", 1, 64, 1.0))};
  for (const int workers : {2, 4}) {
    const double step = workers == 2 ? 1.25 : 2.0;
    records.push_back(make_record(timed("weak", workers, 64, step)));
    records.push_back(in_processes(timed("weak", workers, 64, 1.1 * step), false));
    records.push_back(in_processes(timed("weak", workers, 64, 2 * step), true));
  }
  const auto cells = make_cells(records);
  ASSERT_EQ(cells.size(), 7U);
  const auto groups = scaling(cells, Mode::weak);
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0].setup, "threads of one process");
  EXPECT_EQ(groups[1].setup, "processes over shared memory");
  EXPECT_EQ(groups[2].setup, "processes on nodes");
  for (const ScalingGroup& group : groups) {
    ASSERT_EQ(group.rows.size(), 3U);
    EXPECT_EQ(group.baseline, &cells[0]) << "a worker alone is the baseline of all";
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(group.rows[i].cell->workers, 1 << i);
  }
  EXPECT_NEAR(groups[0].rows[1].efficiency.median, 0.8, 1e-9);
  EXPECT_NEAR(groups[1].rows[1].efficiency.median, 0.8 / 1.1, 1e-9);
  EXPECT_NEAR(groups[2].rows[1].efficiency.median, 0.4, 1e-9);
}

TEST(Scaling, HasAGroupForEachNumberOfNodesThatWorkersAreSpreadOver) {
  std::vector<Record> records{make_record(timed("weak", 1, 64, 1.0))};
  for (const int workers : {2, 4})
    for (const bool is_spread : {false, true}) {
      records.push_back(in_processes(timed("weak", workers, 64, is_spread ? 2.0 : 1.25), false));
      if (!is_spread) continue;
      records.back().communication.algorithm = "exchange (messages)";
      for (auto& rank : records.back().ranks) rank.host = 2 * rank.rank < workers ? "a" : "b";
    }
  const auto cells = make_cells(records);
  const auto groups = scaling(cells, Mode::weak);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].setup, "processes over shared memory");
  EXPECT_EQ(groups[1].setup, "processes on 2 nodes");
  EXPECT_EQ(groups[1].rows.size(), 3U);
}

TEST(Scaling, ComparesTrainingsWhoseWorkersAreJoinedOtherwiseThoughTheyAreAsMany) {
  std::vector<Record> records{make_record(timed("weak", 2, 64, 1.0)),
                              in_processes(timed("weak", 2, 64, 1.1), false),
                              in_processes(timed("weak", 2, 64, 2.0), true)};
  for (Record& record : records) {
    record.kind = "train";
    record.scaling = "";
  }
  const auto cells = make_cells(records);
  ASSERT_EQ(cells.size(), 3U);
  EXPECT_EQ(scaling(cells, Mode::weak).size(), 3U);
  records.resize(1);
  records.push_back(records.front());
  records.back().settings["loader-threads"] = "4";
  EXPECT_TRUE(scaling(make_cells(records), Mode::weak).empty()) << "two trainings, nothing scaled";
}

TEST(Scaling, SplitsABatchByASettingThatTimesDependOnWithItsBaseline) {
  std::vector<Record> records;
  for (const int workers : {1, 2})
    for (const char* threads : {"1", "4"}) {
      records.push_back(make_record(timed("weak", workers, 64, workers == 1 ? 1.0 : 1.25)));
      records.back().settings["loader-threads"] = threads;
    }
  const auto cells = make_cells(records);
  const auto groups = scaling(cells, Mode::weak);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].setup, "loader-threads 1");
  EXPECT_EQ(groups[1].setup, "loader-threads 4");
  for (const ScalingGroup& group : groups) {
    ASSERT_EQ(group.rows.size(), 2U);
    EXPECT_TRUE(group.rows[1].has_ratios);
  }
}

TEST(Scaling, LosesNoCellWithoutABaselineOfItsOwn) {
  std::vector<Record> records{make_record(timed("weak", 1, 64, 1.0)), make_record(timed("weak", 2, 64, 1.25)),
                              make_record(timed("weak", 2, 64, 1.25)),
                              make_skipped(timed("weak", 4, 64, 1.0), "too large")};
  records[2].settings["loader-threads"] = "4";
  const auto cells = make_cells(records);
  const auto groups = scaling(cells, Mode::weak);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].rows.size(), 3U) << "with what was skipped";
  ASSERT_EQ(groups[1].rows.size(), 1U) << "no worker alone may be its baseline";
  EXPECT_TRUE(groups[1].rows[0].is_baseline);
}

TEST(Scaling, TakesTheFewestWorkersOfASetUpForItsBaselineWhereNoneAloneMayBe) {
  std::vector<Record> records{make_record(timed("weak", 1, 64, 1.0)), make_record(timed("weak", 2, 64, 1.25)),
                              make_record(timed("weak", 2, 64, 1.25)),
                              make_record(timed("weak", 4, 64, 1.5))};
  for (const std::size_t i : {2U, 3U}) records[i].settings["loader-threads"] = "4";
  const auto cells = make_cells(records);
  const auto groups = scaling(cells, Mode::weak);
  ASSERT_EQ(groups.size(), 2U);
  ASSERT_EQ(groups[1].rows.size(), 2U);
  EXPECT_EQ(groups[1].baseline->workers, 2);
  EXPECT_TRUE(groups[1].rows[1].has_ratios);
}

TEST(Scaling, KeepsModelsApart) {
  std::vector<Record> records;
  for (const char* model : {"resnet18-cifar", "resnet8-cifar"})
    for (const int workers : {1, 2}) {
      records.push_back(make_record(timed("weak", workers, 64, 1.0)));
      records.back().model.name = model;
    }
  records.push_back(make_record(timed("weak", 1, 128, 1.0)));
  const auto cells = make_cells(records);
  const auto groups = scaling(cells, Mode::weak);
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0].subject, "resnet18-cifar");
  EXPECT_EQ(groups[1].subject, "resnet18-cifar");
  EXPECT_EQ(groups[2].subject, "resnet8-cifar");
  for (const ScalingGroup& group : groups) EXPECT_EQ(group.setup, "");
}

TEST(Scaling, TakesTrainingsByTheBatchThatWasGiven) {
  auto one = make_record(timed("weak", 1, 128, 1.0));
  auto two = make_record(timed("weak", 2, 128, 1.0));
  for (auto* record : {&one, &two}) {
    record->kind = "train";
    record->scaling = "";
  }
  const std::vector<Record> records{one, two};
  const auto cells = make_cells(records);
  EXPECT_EQ(scaling(cells, Mode::weak).size(), 1U);
  EXPECT_TRUE(scaling(cells, Mode::strong).empty());
}

}  // namespace
}  // namespace paceline::analysis
