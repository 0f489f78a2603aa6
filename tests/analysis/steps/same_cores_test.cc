#include "analysis/steps/same_cores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/compare/cells.h"
#include "golden/records.h"

namespace paceline::analysis {
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
  EXPECT_NEAR(pair.total_s(), 0.099 * kMeanJitter, 1e-12);
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
