#include "analysis/predict/simulate_workers.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/rng.h"
#include "measure/statistics.h"

namespace paceline::analysis {
namespace {

/// Streams of random numbers; the step and the worker are the coordinates of each.
enum Stream : std::uint64_t { kOfSteps = 0, kOfWorkers = 1, kOfBoth = 2 };

base::Rng stream(const WorkerScenario& scenario, Stream which, std::uint64_t step, std::uint64_t worker) {
  return {scenario.seed, base::Purpose::bootstrap, step << 2 | which, worker};
}

/// The storage serves all workers' batches of one round at once, and one round after the other.
double storage_seconds(const WorkerScenario& scenario) {
  const auto& storage = scenario.storage;
  const double in_node = std::min(scenario.workers, scenario.workers_per_node);
  const auto time = [](double amount, const Range& rate) { return rate.low > 0 ? amount / rate.low : 0; };
  return std::max({time(scenario.workers * scenario.batch_bytes, storage.shared_bytes_per_s),
                   time(in_node * scenario.batch_bytes, storage.node_bytes_per_s),
                   time(scenario.workers * scenario.batch_opens, storage.opens_per_s)});
}

/// The batches of all workers, which their loaders prepare ahead. Queues are full at the begin.
class Batches {
 public:
  explicit Batches(const WorkerScenario& scenario)
      : scenario_(scenario),
        workers_(static_cast<std::size_t>(scenario.workers)),
        queue_(static_cast<std::size_t>(scenario.queue)),
        storage_s_(storage_seconds(scenario)),
        is_instant_(scenario.loader_s <= 0 && storage_s_ <= 0) {
    if (is_instant_) return;
    ready_.assign(workers_ * queue_, 0);
    loader_free_.assign(workers_, 0);
  }
  /// When the batch of this step is there for the worker.
  [[nodiscard]] double ready(std::size_t step, std::size_t worker) const {
    return is_instant_ ? 0 : ready_[step % queue_ * workers_ + worker];
  }
  /// The storage begins to read what follows the batches of this step, taken from `now` on.
  void take_step(double now) { storage_free_ = std::max(storage_free_, now) + storage_s_; }
  /// The worker takes its batch of this step, and its loader gets the place for a new one.
  void take(std::size_t step, std::size_t worker, double now, base::Rng& random) {
    if (is_instant_) return;
    double seconds = scenario_.loader_s;
    if (scenario_.loader_spread > 0) seconds *= std::max(0.0, 1 + scenario_.loader_spread * random.normal());
    auto& free = loader_free_[worker];
    free = std::max({free, now, storage_free_}) + seconds;
    ready_[step % queue_ * workers_ + worker] = free;
  }

 private:
  const WorkerScenario& scenario_;
  std::size_t workers_, queue_;
  double storage_s_;
  bool is_instant_;
  double storage_free_ = 0;
  std::vector<double> ready_;        ///< [place in the queue][worker]
  std::vector<double> loader_free_;  ///< [worker]
};

/// What each worker's own work is multiplied by in all steps, before what a step adds.
std::vector<double> rank_factors(const WorkerScenario& scenario) {
  std::vector<double> factors(static_cast<std::size_t>(scenario.workers), 1);
  if (scenario.rank_spread > 0)
    for (std::size_t r = 0; r < factors.size(); ++r)
      factors[r] += scenario.rank_spread * stream(scenario, kOfWorkers, 0, r).normal();
  return factors;
}

/// Adds the failures that happen within `seconds` of the run.
void fail_nodes(const WorkerScenario& scenario, double seconds, double& since_checkpoint, base::Rng& random,
                WorkerSimulation& result) {
  if (scenario.seconds_between_failures <= 0) return;
  const int nodes = (scenario.workers + scenario.workers_per_node - 1) / scenario.workers_per_node;
  since_checkpoint += seconds;
  if (scenario.checkpoint_every_s > 0 && since_checkpoint > scenario.checkpoint_every_s)
    since_checkpoint = std::fmod(since_checkpoint, scenario.checkpoint_every_s);
  const double survives = std::exp(-seconds * nodes / scenario.seconds_between_failures);
  if (random.uniform_f64() < survives) return;
  ++result.restarts;
  result.lost_s += scenario.restart_s + since_checkpoint;
}

}  // namespace

WorkerSimulation simulate_workers(const WorkerScenario& scenario) {
  base::expects(scenario.workers >= 1 && scenario.workers_per_node >= 1 && scenario.steps >= 1 &&
                    scenario.queue >= 1 && scenario.own_s >= 0,
                "simulate_workers: workers, steps and queue of at least 1");
  WorkerSimulation result;
  Batches batches(scenario);
  const auto factors = rank_factors(scenario);
  const auto samples = static_cast<std::uint32_t>(scenario.rest.size());
  double now = 0, since_checkpoint = 0;
  for (std::size_t step = 0; step < static_cast<std::size_t>(scenario.steps); ++step) {
    auto of_step = stream(scenario, kOfSteps, step, 0);
    const double common = scenario.common_spread > 0 ? scenario.common_spread * of_step.normal() : 0;
    double last = now, waited = 0, worked = 0;
    batches.take_step(now);
    for (std::size_t r = 0; r < factors.size(); ++r) {
      auto random = stream(scenario, kOfBoth, step, r);
      const double rest = samples > 0                ? scenario.rest[random.below(samples)]
                          : scenario.rest_spread > 0 ? scenario.rest_spread * random.normal()
                                                     : 0;
      const double slower = r < static_cast<std::size_t>(scenario.stragglers) ? scenario.slower : 1;
      const double own = scenario.own_s * slower * std::max(0.0, factors[r] + common + rest);
      const double begin = std::max(now, batches.ready(step, r));
      batches.take(step, r, begin, random);
      waited += begin - now;
      worked += own;
      last = std::max(last, begin + own);
    }
    const double end = last + scenario.exposed_s, workers = scenario.workers;
    result.data_wait_s += waited / workers;
    result.own_s += worked / workers;
    result.waiting_s += last - now - (waited + worked) / workers;
    result.step_s.push_back(end - now);
    fail_nodes(scenario, end - now, since_checkpoint, of_step, result);
    now = end;
  }
  for (double* part : {&result.data_wait_s, &result.own_s, &result.waiting_s}) *part /= scenario.steps;
  result.exposed_s = scenario.exposed_s;
  result.total_s = now + result.lost_s;
  return result;
}

std::vector<SimulatedPoint> simulated_points(const StepModel& model, const Forecast& forecast, int steps) {
  std::vector<double> rest;
  for (const double factor : model.own.others) rest.push_back(factor - 1);
  const auto cluster = middle(forecast.cluster);
  std::vector<SimulatedPoint> points;
  for (const auto& point : forecast.points) {
    const double batch = point.local_batch;
    const WorkerScenario scenario{
        .workers = static_cast<int>(point.workers),
        .workers_per_node = std::max(1, point.workers_per_node),
        .steps = steps,
        .own_s = point.step.own_s,
        .rank_spread = cluster.worker_spread.middle(),
        .rest = rest,
        .stragglers = model.own.slowest.empty() || point.workers == 1 ? 0 : 1,
        .slower = std::max(1.0, model.own.slowest_factor),
        .exposed_s = std::max(0.0, point.step.exposed_s + point.step.missed_s),
        .loader_s = model.loader_s_a_sample * batch / forecast.request.what_if.loader,
        .batch_bytes = model.stored_bytes * batch,
        .batch_opens = model.stored_bytes > 0 ? batch : 0,
        .storage = cluster.storage.value_or(Storage{})};
    const auto simulated = simulate_workers(scenario);
    points.push_back({.workers = point.workers,
                      .mean_s = measure::mean(simulated.step_s),
                      .low_s = measure::quantile(simulated.step_s, kTailPart),
                      .high_s = measure::quantile(simulated.step_s, 1 - kTailPart),
                      .closed_s = point.step_s.value});
  }
  return points;
}

}  // namespace paceline::analysis
