#include "analysis/predict/simulated_steps.h"

#include <algorithm>

#include "analysis/predict/simulate_workers.h"
#include "measure/statistics.h"

namespace paceline::analysis {

std::vector<SimulatedPoint> simulated_points(const StepModel& model, const Forecast& forecast, int steps) {
  constexpr double kOutside = 0.05;
  constexpr int kQueue = 2;  // batches that a loader prepares ahead by default
  std::vector<double> rest;
  for (const double factor : model.own.others) rest.push_back(factor - 1);
  const auto cluster = middle(forecast.cluster);
  std::vector<SimulatedPoint> points;
  for (const auto& point : forecast.points) {
    const double batch = point.local_batch;
    WorkerScenario scenario{.workers = static_cast<int>(point.workers),
                            .workers_per_node = std::max(1, point.workers_per_node),
                            .steps = steps,
                            .own_s = point.step.own_s,
                            .rank_spread = cluster.worker_spread.middle(),
                            .rest = rest,
                            .stragglers = model.own.slowest.empty() || point.workers == 1 ? 0 : 1,
                            .slower = std::max(1.0, model.own.slowest_factor),
                            .exposed_s = point.step.exposed_s + point.step.missed_s,
                            .loader_s = model.loader_s_a_sample * batch / forecast.request.what_if.loader,
                            .queue = kQueue,
                            .batch_bytes = model.stored_bytes * batch,
                            .batch_opens = model.stored_bytes > 0 ? batch : 0,
                            .storage = cluster.storage.value_or(Storage{})};
    scenario.exposed_s = std::max(0.0, scenario.exposed_s);
    const auto simulated = simulate_workers(scenario);
    points.push_back({.workers = point.workers,
                      .mean_s = measure::mean(simulated.step_s),
                      .low_s = measure::quantile(simulated.step_s, kOutside),
                      .high_s = measure::quantile(simulated.step_s, 1 - kOutside),
                      .closed_s = point.step_s.value});
  }
  return points;
}

}  // namespace paceline::analysis
