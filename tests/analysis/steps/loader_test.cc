#include "analysis/steps/loader.h"

#include <gtest/gtest.h>

#include "analysis/compare/cells.h"
#include "golden/records.h"

namespace paceline::analysis {
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
