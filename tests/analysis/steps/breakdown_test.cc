#include <gtest/gtest.h>

#include <utility>

#include "analysis/compare/cell.h"
#include "analysis/steps/breakdown.h"
#include "golden/records.h"

namespace paceline::analysis {
namespace {

using golden::make_record;
using measure::Phase;
using measure::Record;

/// Exact numbers: no jitter, eight steps.
golden::Run even(golden::Run run) {
  run.jitter.assign(8, 1.0);
  return run;
}

TEST(Breakdown, AddsUpToTheStep) {
  const auto record = make_record(even({.workers = 2,
                                        .forward = 0.3,
                                        .backward = 0.6,
                                        .update = 0.02,
                                        .exposed_transfer = 0.04,
                                        .exposed_wait = 0.03,
                                        .communication = 0.2,
                                        .transfer = 0.15,
                                        .data_wait = 0.005,
                                        .copy = 0.003,
                                        .other = 0.002}));
  const auto cells = make_cells({&record, 1});
  const auto ledger = breakdown(cells[0]);
  EXPECT_NEAR(ledger.mean.compute(), 0.92, 1e-12);
  EXPECT_NEAR(ledger.mean.exposed(), 0.07, 1e-12);
  EXPECT_NEAR(ledger.communication_total, 0.2, 1e-12);
  EXPECT_NEAR(ledger.transfer, 0.15, 1e-12);
  EXPECT_NEAR(ledger.late_peer, 0.05, 1e-12);
  EXPECT_NEAR(ledger.overlapped, 0.13, 1e-12);
  EXPECT_NEAR(ledger.mean.total(), 1.0, 1e-12);
  EXPECT_NEAR(ledger.mean.total(), cells[0].step_s.median, 1e-12);
  EXPECT_NEAR(ledger.closure, 1, 1e-12);
}

TEST(Breakdown, TakesTheMeanOverRanksAndNamesTheSlowest) {
  auto record = make_record(even(
      {.workers = 2, .forward = 0.4, .backward = 0.4, .update = 0, .data_wait = 0, .copy = 0, .other = 0}));
  // Rank 1 works 1.0 s a step, rank 0 works 0.8 s and waits 0.2 s.
  record.ranks[0].phases[static_cast<std::size_t>(Phase::exposed_wait)] = 8 * 0.2;
  record.ranks[1].phases[static_cast<std::size_t>(Phase::backward)] = 8 * 0.6;
  for (auto& rank : record.ranks) rank.wall_s = 8;
  const auto cells = make_cells({&record, 1});
  const auto ledger = breakdown(cells[0]);
  EXPECT_NEAR(ledger.mean.compute(), 0.9, 1e-12);
  EXPECT_NEAR(ledger.mean.exposed_wait, 0.1, 1e-12);
  EXPECT_EQ(ledger.slowest_rank, 1);
  EXPECT_NEAR(ledger.slowest.compute(), 1.0, 1e-12);
  EXPECT_NEAR(ledger.imbalance, 1.0 / 0.9 - 1, 1e-12);
}

TEST(Breakdown, ReportsTheWorstClosureOfAllRanks) {
  auto record = make_record(even({.workers = 2}));
  record.ranks[1].wall_s /= 1.05;
  const auto cells = make_cells({&record, 1});
  EXPECT_NEAR(breakdown(cells[0]).closure, 1.05, 1e-12);
}

TEST(Breakdown, CallsATooLateWakingBySoMuchAndNotNegativeOverlap) {
  const auto record =
      make_record(even({.workers = 2, .exposed_transfer = 0.03, .communication = 0.02, .transfer = 0.02}));
  const auto cells = make_cells({&record, 1});
  EXPECT_EQ(breakdown(cells[0]).overlapped, 0);
  EXPECT_NEAR(breakdown(cells[0]).woken_late, 0.01, 1e-12);
}

TEST(Breakdown, KeepsEvaluationOutOfTheStep) {
  auto record = make_record(even({}));
  record.ranks[0].phases[static_cast<std::size_t>(Phase::evaluation)] = 3;
  record.ranks[0].phases[static_cast<std::size_t>(Phase::checkpoint)] = 1;
  record.ranks[0].wall_s += 4;
  const auto cells = make_cells({&record, 1});
  EXPECT_NEAR(breakdown(cells[0]).mean.total(), golden::Run{}.step(), 1e-12);
  EXPECT_NEAR(breakdown(cells[0]).outside_steps, 4, 1e-12);
}

TEST(Residual, IsTheSumOfWhatExplainsIt) {
  const std::vector<Record> records{make_record(even({.train_samples = 51200})),
                                    make_record(even({.workers = 2,
                                                      .forward = 0.45,
                                                      .backward = 0.85,
                                                      .exposed_transfer = 0.05,
                                                      .exposed_wait = 0.02,
                                                      .communication = 0.3,
                                                      .transfer = 0.2,
                                                      .data_wait = 0.015,
                                                      .other = 0.004,
                                                      .train_samples = 51200}))};
  const auto cells = make_cells(records);
  const auto split = residual(breakdown(cells[0]), breakdown(cells[1]));
  EXPECT_NEAR(
      split.residual_s,
      split.exposed_transfer_s + split.waiting_s + split.data_wait_s + split.slower_kernels_s + split.rest_s,
      1e-9);
  // 51,200 images: 400 steps of 1.22 s, and 200 of 1.401 s; T(2) - T(1)/2 = 280.2 - 244.
  EXPECT_NEAR(2 * (split.epoch_s - split.residual_s), 400 * 1.22, 1e-9);
  EXPECT_NEAR(split.epoch_s, 200 * 1.401, 1e-9);
  EXPECT_NEAR(split.residual_s, 36.2, 1e-9);
  EXPECT_NEAR(split.exposed_transfer_s, 10, 1e-9);  // 200 x 0.05
  EXPECT_NEAR(split.waiting_s, 4, 1e-9);            // 200 x 0.02
  EXPECT_NEAR(split.data_wait_s, 2, 1e-9);          // 200 x (0.015 - 0.005)
  EXPECT_NEAR(split.slower_kernels_s, 20, 1e-9);    // 200 x (1.31 - 1.21)
  EXPECT_NEAR(split.rest_s, 0.2, 1e-9);             // 200 x (0.006 - 0.005)
  EXPECT_FALSE(is_data_bound(breakdown(cells[0])));
}

TEST(Residual, IsOfTheSameImagesHoweverManyTheBatchesDrop) {
  // 20,000 a worker: 2 steps of 50,000 images alone, 1 of two workers; equal steps are an ideal scaling.
  const std::vector<Record> records{make_record(even({.local_batch = 20000})),
                                    make_record(even({.workers = 2, .local_batch = 20000}))};
  const auto cells = make_cells(records);
  const auto split = residual(breakdown(cells[0]), breakdown(cells[1]));
  EXPECT_NEAR(split.epoch_s, 1.25 * golden::Run{}.step(), 1e-9);
  EXPECT_NEAR(split.residual_s, 0, 1e-9);
}

TEST(DataBound, IsALoaderThatCouldNotGiveMuchMore) {
  // 128 images in 1.2 s of work and 0.3 s of waiting: 85 images/s are used.
  auto record = make_record(even({.data_wait = 0.315, .copy = 0, .other = 0}));
  const auto with_ceiling = [&](double images_per_s) {
    record.ranks[0].loader_prepare_s = static_cast<double>(record.window.samples) / images_per_s;
    const auto cells = make_cells({&record, 1});
    const auto ledger = breakdown(cells[0]);
    return std::pair{is_data_bound(ledger), waits_for_scheduling(ledger)};
  };
  EXPECT_EQ(with_ceiling(85), (std::pair{true, false}));
  EXPECT_EQ(with_ceiling(120), (std::pair{true, false}));
  EXPECT_EQ(with_ceiling(40 * 85), (std::pair{false, true}));
  record.ranks[0].loader_prepare_s = 0;  // nothing is known of the loader
  const auto cells = make_cells({&record, 1});
  EXPECT_TRUE(is_data_bound(breakdown(cells[0])));
}

}  // namespace

namespace {

using golden::make_record;

/// A step of 0.2 s of work and `data_wait`; 128 images a worker.
golden::Run waiting(double data_wait, int workers = 1) {
  return {.workers = workers,
          .forward = 0.1,
          .backward = 0.1,
          .update = 0,
          .data_wait = data_wait,
          .copy = 0,
          .other = 0,
          .jitter = {1, 1, 1, 1}};
}

/// Loaders that prepare `rate` images a second of each thread, in as much processor time.
measure::Record with_loader(measure::Record record, double rate, int threads) {
  for (auto& rank : record.ranks) {
    rank.loader_prepare_s = static_cast<double>(record.window.samples) / record.workers / rate;
    rank.loader_processor_s = rank.loader_prepare_s;
    rank.loader_threads = threads;
  }
  return record;
}

TEST(LoaderUse, SaysHowManyThreadsAWorkerWouldDo) {
  // 640 images/s are wanted of each worker and a thread prepares 320: two would just do, three to be safe.
  for (const int workers : {1, 2}) {
    const auto record = with_loader(make_record(waiting(0.2, workers)), 320, 1);
    const auto cells = make_cells({&record, 1});
    const auto use = loader_use(breakdown(cells[0]));
    EXPECT_NEAR(use.used_images_per_s, 320 * workers, 1e-6);
    EXPECT_NEAR(use.wanted_images_per_s, 640 * workers, 1e-6);
    EXPECT_NEAR(use.ceiling_images_per_s, 320 * workers, 1e-6);
    EXPECT_EQ(use.threads_wanted, 3);
    EXPECT_NEAR(*use.images_per_s_a_core, 320, 1e-6);
    EXPECT_NEAR(*use.computing_share, 1, 1e-6);
    EXPECT_TRUE(is_data_bound(breakdown(cells[0])));
  }
  const auto record = with_loader(make_record(waiting(0)), 320, 4);
  const auto cells = make_cells({&record, 1});
  EXPECT_EQ(loader_use(breakdown(cells[0])).threads_wanted, 3);
}

// --loader-threads 0: however fast it prepares, every step waits for it.
TEST(LoaderUse, OfAWorkerThatPreparesItsOwnBatchesIsTheLimit) {
  auto record = with_loader(make_record(waiting(0.2)), 5000, 0);
  for (auto& rank : record.ranks) rank.loader_queue = 0;
  const auto cells = make_cells({&record, 1});
  const auto ledger = breakdown(cells[0]);
  EXPECT_TRUE(ledger.prepares_in_steps);
  EXPECT_TRUE(is_data_bound(ledger));
  EXPECT_FALSE(waits_for_scheduling(ledger));
  EXPECT_EQ(loader_use(ledger).threads_per_worker, 0);
  EXPECT_EQ(loader_use(ledger).threads_wanted, 1);
}

TEST(LoaderUse, JoinsQueueAndWaitsOverRanks) {
  auto record = make_record(waiting(0.1, 2));
  record.ranks[0].loader_ready = 2;
  record.ranks[0].loader_waits = 0;
  record.ranks[1].loader_ready = 0.5;
  record.ranks[1].loader_waits = 3;
  const auto cells = make_cells({&record, 1});
  const auto use = loader_use(breakdown(cells[0]));
  EXPECT_DOUBLE_EQ(*use.ready, 1.25);
  EXPECT_DOUBLE_EQ(*use.queue, 2);
  EXPECT_DOUBLE_EQ(*use.waited_share, 3.0 / 8);
}

TEST(LoaderUse, KnowsNoQueueOfRecordsThatHaveNone) {
  auto record = make_record(waiting(0.1));
  record.ranks[0].loader_ready.reset();
  const auto cells = make_cells({&record, 1});
  const auto use = loader_use(breakdown(cells[0]));
  EXPECT_FALSE(use.ready || use.images_per_s_a_core || use.waited_share);
  EXPECT_NEAR(use.ceiling_images_per_s, 4400, 1e-6);
}

}  // namespace
}  // namespace paceline::analysis
