#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/compare/cell.h"
#include "analysis/steps/process_layouts.h"
#include "golden/records.h"

namespace paceline::analysis {
namespace {

using golden::make_record;
using measure::Record;

Record threads(double exposed, int repeat = 0) {
  return make_record({.workers = 4, .local_batch = 32, .repeat = repeat, .exposed_transfer = exposed});
}

/// The same workers as processes, one in each.
Record processes(int nodes, double exposed) {
  auto record = threads(exposed);
  record.communication.processes = 4;
  record.communication.nodes = nodes;
  record.communication.algorithm = nodes == 1 ? "direct (memory of the host)" : "exchange (messages)";
  for (int rank = 0; rank < 4; ++rank) {
    auto& one = record.ranks[static_cast<std::size_t>(rank)];
    one.host = rank * nodes / 4 == 0 ? "a" : "b";
    one.process = rank;
    one.peak_bytes = 1000;
    one.bytes_sent = one.bytes_received = 800;
  }
  return record;
}

Record data_parallel(double exposed) {
  auto record = threads(exposed);
  record.settings["parallel"] = record.communication.parallel.emplace("data-parallel");
  return record;
}

TEST(ProcessLayouts, AreNamedByWhatTellsThemApart) {
  auto launched = processes(1, 0.02);
  launched.communication.launcher = "slurm";
  auto packed = processes(2, 0.5);
  packed.ranks[2].host = "a";
  packed.settings["placement"] = packed.communication.placement.emplace("packed");
  const std::vector<Record> records{threads(0.01), data_parallel(0.3), processes(1, 0.02),
                                    launched,      processes(2, 0.5),  packed};
  const auto cells = make_cells(records);
  const auto all = process_layouts(cells);
  ASSERT_EQ(all.size(), 1u);
  std::vector<std::string> names;
  for (const ProcessLayout& way : all[0].layouts) names.push_back(way.name);
  EXPECT_THAT(names,
              testing::ElementsAre("threads of one process", "threads of one process, data-parallel",
                                   "4 processes over shared memory, no launcher",
                                   "4 processes over shared memory, launcher slurm",
                                   "4 processes on 2 nodes (2 + 2)", "4 processes on 2 nodes (3 + 1)"));
}

// A Debug record was a repeat of a Release one, and a way beside another version's.
TEST(ProcessLayouts, OfAnotherVersionOrHostStayApart) {
  auto debug = processes(1, 0.02), version = processes(1, 0.02), host = processes(1, 0.02);
  debug.environment.build = "Debug";
  version.environment.version = "9";
  host.environment.host = "elsewhere";
  for (const Record& other : {debug, version, host}) {
    const std::vector<Record> records{threads(0.01), other};
    const auto cells = make_cells(records);
    EXPECT_TRUE(process_layouts(cells).empty());
  }
}

TEST(ProcessLayouts, StandBesideEachOther) {
  const std::vector<Record> records{threads(0.01), threads(0.01, 1), processes(1, 0.02), processes(2, 0.5),
                                    data_parallel(0.3)};
  const auto cells = make_cells(records);
  const auto all = process_layouts(cells);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].label, "b 32, N 4");
  ASSERT_EQ(all[0].layouts.size(), 4u);
  EXPECT_EQ(all[0].layouts[0].cell->records.size(), 2u);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(all[0].layouts[i].cell->records.size(), 1u);
  EXPECT_EQ(all[0].fastest, 0u);
}

TEST(ProcessLayouts, HaveWhatEachSendsAndHolds) {
  const std::vector<Record> records{threads(0.01), processes(1, 0.02)};
  const auto cells = make_cells(records);
  const auto all = process_layouts(cells);
  ASSERT_EQ(all.size(), 1u);
  const auto& [threads, processes] = std::pair(all[0].layouts[0], all[0].layouts[1]);
  EXPECT_DOUBLE_EQ(threads.sent.value(), static_cast<double>(records[0].communication.bytes_sent) / 8);
  EXPECT_EQ(threads.received, std::nullopt) << "a record of before this was counted";
  EXPECT_EQ(threads.peak_bytes, records[0].memory.peak_bytes);
  EXPECT_EQ(processes.peak_bytes, 4000);
  EXPECT_DOUBLE_EQ(processes.sent_by_all.value(), 4 * 800 / 8.0);
}

TEST(ProcessLayouts, OfOtherTrainingsAreNotCompared) {
  auto other = processes(1, 0.02);
  other.settings["lr"] = "0.2";
  EXPECT_TRUE(process_layouts(make_cells(std::vector{threads(0.01), other})).empty());
  auto more_threads = processes(1, 0.02);
  more_threads.threads_per_worker = 2;
  EXPECT_TRUE(process_layouts(make_cells(std::vector{threads(0.01), more_threads})).empty());
  EXPECT_TRUE(process_layouts(make_cells(std::vector{threads(0.01), threads(0.01, 1)})).empty()) << "one way";
}

TEST(ProcessLayouts, AreSlowerBeyondTheErrorOfBoth) {
  const std::vector<Record> records{threads(0.01), data_parallel(0.9)},
      alike{threads(0.01), data_parallel(0.011)};
  const auto cells = make_cells(records), same = make_cells(alike);
  const auto apart = process_layouts(cells), together = process_layouts(same);
  EXPECT_FALSE(apart[0].layouts[0].is_slower()) << "it is the fastest";
  EXPECT_TRUE(apart[0].layouts[1].is_slower());
  EXPECT_FALSE(together[0].layouts[1].is_slower());
}

}  // namespace

namespace {

using golden::make_record;
using measure::Record;

/// One worker of two threads, as a sweep measures it.
Record threads_of(golden::Run run) {
  run.kind = "sweep";
  run.scaling = "";
  auto record = make_record(run);
  record.threads_per_worker = 2;
  record.settings["threads"] = "2";
  record.ranks[0].cores = {0, 1};
  return record;
}

TEST(SameCores, SetsThreadsAgainstWorkersAtOneGlobalBatch) {
  const std::vector<Record> records{
      threads_of({.local_batch = 128, .forward = 0.4, .backward = 0.8}),
      threads_of({.local_batch = 256}),
      make_record({.scaling = "strong",
                   .workers = 2,
                   .local_batch = 64,
                   .forward = 0.4,
                   .backward = 0.85,
                   .exposed_transfer = 0.03,
                   .exposed_wait = 0.02,
                   .data_wait = 0.004}),
  };
  const auto cells = make_cells(records);
  const auto pairs = same_cores(cells);
  ASSERT_EQ(pairs.size(), 1U);
  const SameCores& pair = pairs[0];
  EXPECT_EQ(pair.threads, &cells[0]);
  EXPECT_EQ(pair.workers, &cells[2]);
  EXPECT_EQ(pair.cores, 2);
  EXPECT_NEAR(pair.speed.median, cells[0].step_s.median / cells[2].step_s.median, 1e-12);
  EXPECT_LT(pair.speed.high, 1);
  constexpr double kMeanJitter = 8.02 / 8;
  EXPECT_NEAR(pair.compute_s, 0.05 * kMeanJitter, 1e-12);
  EXPECT_NEAR(pair.exposed_transfer_s, 0.03 * kMeanJitter, 1e-12);
  EXPECT_NEAR(pair.waiting_s, 0.02 * kMeanJitter, 1e-12);
  EXPECT_NEAR(pair.data_wait_s, -0.001 * kMeanJitter, 1e-12);
  EXPECT_NEAR(pair.compute_s + pair.exposed_transfer_s + pair.waiting_s + pair.data_wait_s + pair.rest_s,
              0.099 * kMeanJitter, 1e-12);
}

/// Two workers of a GPU each have twice the GPUs of one; the threads of both only drive them.
TEST(SameCores, SaysNothingOfWorkersThatComputeOnADevice) {
  std::vector<Record> records{threads_of({.local_batch = 128}),
                              make_record({.scaling = "strong", .workers = 2, .local_batch = 64})};
  EXPECT_EQ(same_cores(make_cells(records)).size(), 1U);
  for (const char* device : {"cuda", "cuda:0", "cuda-on-host"}) {
    for (Record& record : records) record.device = device;
    EXPECT_TRUE(same_cores(make_cells(records)).empty()) << device;
  }
}

TEST(SameCores, LeavesOutWhatWouldCompareSomethingElse) {
  const auto one = threads_of({.local_batch = 128});
  auto other_precision = make_record({.scaling = "strong", .workers = 2, .local_batch = 64});
  other_precision.precision = "bf16";
  auto other_loader = make_record({.scaling = "strong", .workers = 2, .local_batch = 64});
  other_loader.settings["loader-threads"] = "4";
  const auto oversubscribed =
      make_record({.scaling = "strong", .workers = 2, .local_batch = 64, .oversubscribed = true});
  const auto other_batch = make_record({.scaling = "strong", .workers = 2, .local_batch = 128});
  auto one_core = make_record({.scaling = "strong", .workers = 2, .local_batch = 64});
  one_core.ranks[0].cores = one_core.ranks[1].cores = {0};
  for (const Record& other : {other_precision, other_loader, oversubscribed, other_batch, one_core}) {
    const std::vector<Record> records{one, other};
    EXPECT_THAT(same_cores(make_cells(records)), testing::IsEmpty()) << other.id;
  }
}

TEST(SameCores, JoinsTheRepeatsOfWeakAndStrongScalingOfOneConfiguration) {
  std::vector<Record> records{threads_of({.local_batch = 128}),
                              make_record({.scaling = "weak", .workers = 2, .local_batch = 64})};
  for (int repeat = 0; repeat < 2; ++repeat)
    records.push_back(make_record({.scaling = "strong", .workers = 2, .local_batch = 64, .repeat = repeat}));
  const auto cells = make_cells(records);
  const auto pairs = same_cores(cells);
  ASSERT_EQ(pairs.size(), 1U);
  EXPECT_EQ(pairs[0].workers->scaling, kBothScalings);
  EXPECT_EQ(pairs[0].workers->records.size(), 3U);
}

TEST(SameCores, PairsWhatOneVersionMeasured) {
  const auto workers = make_record({.scaling = "strong", .workers = 2, .local_batch = 64});
  auto newer = threads_of({.local_batch = 128});
  newer.environment.version = "0.2.0";
  std::vector<Record> records{newer, workers};
  const auto two = make_cells(records);
  ASSERT_EQ(same_cores(two).size(), 1U);
  EXPECT_THAT(same_cores(two)[0].remarks, testing::Contains(testing::HasSubstr("by version 0.2.0, this by")));
  records.push_back(threads_of({.local_batch = 128}));
  newer.repeat = 1;
  records.push_back(newer);
  const auto cells = make_cells(records);
  const auto pairs = same_cores(cells);
  ASSERT_EQ(pairs.size(), 1U);
  EXPECT_EQ(pairs[0].threads->record().environment.version, "0.1.0 (abc1234)") << "though of fewer repeats";
  EXPECT_THAT(pairs[0].remarks, testing::IsEmpty());
}

}  // namespace
}  // namespace paceline::analysis
