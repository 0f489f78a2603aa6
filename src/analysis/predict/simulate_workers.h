#pragma once

/// Draws the own work of every worker in every step, with its loader's queue, the storage that all share, and
/// nodes that fail: the distribution of steps where expected maxima are not enough.
///
/// In step k worker r works own_s (1 + common(k) + rank(r) + rest(k, r)) once its batch is there, then waits
/// for the last worker, and all exchange gradients. What all share (`common`) makes nobody wait.

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/predict/cluster.h"
#include "analysis/predict/forecast.h"

namespace paceline::analysis {

struct WorkerScenario {
  int workers = 1, workers_per_node = 1, steps = 200;
  double own_s = 0;  ///< own work of a step
  /// Standard deviations, as parts of own work: of what all workers share in a step, of what a worker keeps
  /// in all steps, and of the rest.
  double common_spread = 0, rank_spread = 0, rest_spread = 0;
  /// Samples of the rest, of which each worker draws one a step; in place of normal ones of rest_spread.
  std::span<const double> rest{};
  /// Workers that are slower in every step, and how many times.
  int stragglers = 0;
  double slower = 1;
  double exposed_s = 0;  ///< of a step's transfer, after the last worker is done

  /// A loader prepares up to `queue` batches ahead (at least 1; by default as loaders do), each in loader_s
  /// with a standard deviation of loader_spread of it.
  double loader_s = 0, loader_spread = 0;
  int queue = 2;
  double batch_bytes = 0, batch_opens = 0;  ///< that a worker's batch takes from storage
  Storage storage{};                        ///< of fixed ranges

  /// A node fails once in so long, on average; 0: never. The run then takes restart_s, and what it did since
  /// the last checkpoint again.
  double seconds_between_failures = 0, restart_s = 0, checkpoint_every_s = 0;
  std::uint64_t seed = 1;
};

struct WorkerSimulation {
  std::vector<double> step_s;
  /// Means over workers and steps; they add up to the mean step.
  double data_wait_s = 0, own_s = 0, waiting_s = 0, exposed_s = 0;
  int restarts = 0;
  double lost_s = 0;   ///< by restarts: starting again and work that is done twice
  double total_s = 0;  ///< all steps and what was lost
};

/// Cost     about 50 ns for each worker and step; 8 (queue + 2) bytes a worker
///
/// Requires  1 <= workers, workers_per_node, steps, queue; all figures finite and at least 0
[[nodiscard]] WorkerSimulation simulate_workers(const WorkerScenario& scenario);

struct SimulatedPoint {
  std::int64_t workers = 1;
  double mean_s = 0;
  double low_s = 0, high_s = 0;  ///< of the middle 90 % of the steps
  double closed_s = 0;           ///< the closed form's step
};

/// For each point of the forecast: what the closed form's expected maximum, and its steps of one length,
/// leave out.
///
/// Cost     50 ns for each worker and step
[[nodiscard]] std::vector<SimulatedPoint> simulated_points(const StepModel& model, const Forecast& forecast,
                                                           int steps);

}  // namespace paceline::analysis
