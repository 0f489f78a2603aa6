#include "analysis/predict/simulate_workers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "measure/statistics.h"

namespace paceline::analysis {
namespace {

double mean_step(const WorkerSimulation& result) { return measure::mean(result.step_s); }

TEST(SimulateWorkers, AddsUpWithoutSpread) {
  const auto result = simulate_workers({.workers = 100, .steps = 50, .own_s = 0.1, .exposed_s = 0.02});
  for (const double step : result.step_s) EXPECT_NEAR(step, 0.12, 1e-12);
  EXPECT_NEAR(result.own_s, 0.1, 1e-12);
  EXPECT_NEAR(result.waiting_s, 0, 1e-12);
  EXPECT_NEAR(result.total_s, 6, 1e-9);
}

TEST(SimulateWorkers, PartsAddUpToTheStep) {
  const auto result = simulate_workers({.workers = 64,
                                        .steps = 100,
                                        .own_s = 0.1,
                                        .common_spread = 0.02,
                                        .rank_spread = 0.03,
                                        .rest_spread = 0.05,
                                        .exposed_s = 0.01,
                                        .loader_s = 0.12,
                                        .loader_spread = 0.3});
  EXPECT_NEAR(result.data_wait_s + result.own_s + result.waiting_s + result.exposed_s, mean_step(result),
              1e-9);
  EXPECT_GT(result.data_wait_s, 0);
}

TEST(SimulateWorkers, WaitsForTheExpectedMaximum) {
  // The expected maximum of n standard normal draws: 0.5642 for 2, 1.5388 for 10, 2.5076 for 100.
  const std::pair<int, double> cases[] = {{2, 0.5642}, {10, 1.5388}, {100, 2.5076}};
  for (const auto& [workers, maximum] : cases) {
    const auto result =
        simulate_workers({.workers = workers, .steps = 4000, .own_s = 1, .rest_spread = 0.05});
    EXPECT_NEAR(result.waiting_s, 0.05 * maximum, 0.05 * 0.04) << workers;
  }
}

TEST(SimulateWorkers, WaitsForNobodyInWhatAllShare) {
  const auto result = simulate_workers({.workers = 50, .steps = 500, .own_s = 1, .common_spread = 0.1});
  EXPECT_NEAR(result.waiting_s, 0, 1e-9);
  EXPECT_NEAR(measure::standard_deviation(result.step_s), 0.1, 0.01);
}

TEST(SimulateWorkers, KeepsTheSlowWorkersSlow) {
  const auto result =
      simulate_workers({.workers = 10, .steps = 20, .own_s = 0.1, .stragglers = 1, .slower = 1.3});
  EXPECT_NEAR(mean_step(result), 0.13, 1e-12);
  EXPECT_NEAR(result.waiting_s, 0.9 * 0.03, 1e-12);
}

TEST(SimulateWorkers, DrawsFromSamples) {
  const double rest[] = {0, 0, 0, 0.5};
  const auto result = simulate_workers({.workers = 2, .steps = 4000, .own_s = 1, .rest = rest});
  EXPECT_NEAR(mean_step(result), 1 + 0.5 * (1 - 0.75 * 0.75), 0.02);
}

TEST(SimulateWorkers, IsHeldByTheSlowestSource) {
  WorkerScenario scenario{.workers = 32, .workers_per_node = 8, .steps = 200, .own_s = 0.1};
  const auto steady = [](const WorkerScenario& one) {
    const auto steps = simulate_workers(one).step_s;
    return measure::mean(std::span(steps).subspan(20));
  };
  scenario.loader_s = 0.15;
  EXPECT_NEAR(steady(scenario), 0.15, 1e-6);
  scenario.loader_s = 0.05;  // hidden behind the work
  EXPECT_NEAR(steady(scenario), 0.1, 1e-6);
  scenario.batch_bytes = 1e8;
  scenario.storage.shared_bytes_per_s = Range::of(16e9);  // 32 x 0.1 GB in 0.2 s
  EXPECT_NEAR(steady(scenario), 0.2, 0.01);
  scenario.storage = {.shared_bytes_per_s = {}, .node_bytes_per_s = Range::of(2e9), .opens_per_s = {}};
  EXPECT_NEAR(steady(scenario), 0.4, 0.01);
  scenario.storage = {.shared_bytes_per_s = {}, .node_bytes_per_s = {}, .opens_per_s = Range::of(1000)};
  scenario.batch_opens = 10;
  EXPECT_NEAR(steady(scenario), 0.32, 0.01);
}

TEST(SimulateWorkers, SmoothsWithALongerQueue) {
  WorkerScenario scenario{
      .workers = 8, .steps = 1000, .own_s = 0.1, .loader_s = 0.09, .loader_spread = 0.5, .queue = 1};
  const double short_queue = simulate_workers(scenario).data_wait_s;
  scenario.queue = 8;
  EXPECT_LT(simulate_workers(scenario).data_wait_s, 0.6 * short_queue);
}

TEST(SimulateWorkers, LosesTimeToFailures) {
  // 10 nodes that fail once in 1,000 s each, in a run of 1,000 s: about 10 failures.
  WorkerScenario scenario{.workers = 80, .workers_per_node = 8, .steps = 1000, .own_s = 1};
  scenario.seconds_between_failures = 1000;
  scenario.restart_s = 30;
  scenario.checkpoint_every_s = 20;
  const auto result = simulate_workers(scenario);
  EXPECT_NEAR(result.restarts, 10, 3 * std::sqrt(10));
  EXPECT_GE(result.lost_s, 30 * result.restarts);
  EXPECT_LE(result.lost_s, 51 * result.restarts);
  EXPECT_NEAR(result.total_s, 1000 + result.lost_s, 1e-6);
}

TEST(SimulateWorkers, RepeatsWithTheSameSeed) {
  WorkerScenario scenario{.workers = 16, .steps = 10, .own_s = 1, .rest_spread = 0.1};
  const auto first = simulate_workers(scenario), again = simulate_workers(scenario);
  EXPECT_EQ(first.step_s, again.step_s);
  scenario.seed = 2;
  EXPECT_NE(simulate_workers(scenario).step_s, first.step_s);
}

}  // namespace
}  // namespace paceline::analysis
