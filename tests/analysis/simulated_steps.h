#pragma once

/// Records of steps whose causes are known: each rank's own work is drawn, the step ends when the last of
/// them and the last bucket are done. What a waterfall must find again.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "analysis/predict/forecast.h"
#include "analysis/steps/step_lines.h"
#include "base/rng.h"
#include "golden/records.h"
#include "measure/record.h"

namespace paceline::analysis {

/// The point of so many workers; null: there is none.
inline const ForecastPoint* point_at(const Forecast& forecast, std::int64_t workers) {
  const auto found = std::ranges::find(forecast.points, workers, &ForecastPoint::workers);
  return found == forecast.points.end() ? nullptr : &*found;
}

struct SimulatedRun {
  std::string scaling = "weak";
  int workers = 1;
  std::int64_t local_batch = 32;
  double forward = 0.1, backward = 0.2;  ///< of every rank, a step
  double data_wait = 0.001, copy = 0.002, update = 0.01, other = 0.003;
  double straggler = 0;  ///< more forward of the last rank
  double jitter = 0;     ///< mean of an exponential that every rank draws in every step
  double run_noise = 0;  ///< s.d. of a factor on a run's compute
  BucketLink link{};     ///< alpha 0, no bytes: nothing is moved
  std::vector<double> bucket_bytes{4e6, 4e6, 1e6};
  int steps = 100;
  std::uint64_t seed = 1;
  int repeat = 0;
};

inline measure::Record simulate(const SimulatedRun& run) {
  using measure::Phase;
  measure::Record record = golden::make_record(
      {.scaling = run.scaling, .workers = run.workers, .local_batch = run.local_batch, .repeat = run.repeat});
  base::Rng rng(run.seed, base::Purpose::test, static_cast<std::uint64_t>(run.repeat),
                static_cast<std::uint64_t>(1000 * run.workers + run.local_batch));
  const double factor = 1 + run.run_noise * rng.normal();
  const auto ranks = static_cast<std::size_t>(run.workers);
  const double forward = factor * run.forward, backward = factor * run.backward;
  record.buckets.clear();
  double all_bytes = 0, bytes = 0;
  for (const double size : run.bucket_bytes) all_bytes += size;
  std::vector<ReplayedBucket> replay;
  for (const double size : run.bucket_bytes) {
    bytes += size;
    replay.push_back({.ready_s = backward * bytes / all_bytes, .transfer_s = run.link.seconds(size)});
    auto& bucket = record.buckets.emplace_back();
    bucket.bytes = static_cast<std::int64_t>(size);
    bucket.ready_s.emplace(static_cast<std::size_t>(run.steps), replay.back().ready_s);
    if (run.workers == 1) continue;
    bucket.transfer_s.assign(static_cast<std::size_t>(run.steps), replay.back().transfer_s);
    bucket.duration_s = bucket.transfer_s;
  }
  const double exposed = run.workers == 1 ? 0 : exposed_seconds(replay, backward);
  for (auto& rank : record.ranks) {
    rank.phases = {};
    rank.step_s.clear();
    rank.own_s.emplace();
    rank.wall_s = 0;
  }
  std::vector<double> extra(ranks);
  for (int step = 0; step < run.steps; ++step) {
    for (std::size_t i = 0; i < ranks; ++i)
      extra[i] = (run.jitter > 0 ? -run.jitter * std::log(1 - rng.uniform_f64()) : 0) +
                 (i + 1 == ranks && ranks > 1 ? run.straggler : 0);
    const double latest = *std::max_element(extra.begin(), extra.end());
    for (std::size_t i = 0; i < ranks; ++i) {
      auto& rank = record.ranks[i];
      const auto book = [&](Phase phase, double seconds) {
        rank.phases[static_cast<std::size_t>(phase)] += seconds;
        rank.wall_s += seconds;
        return seconds;
      };
      const double own = book(Phase::forward, forward + extra[i]) + book(Phase::backward, backward) +
                         book(Phase::data_wait, run.data_wait) + book(Phase::copy, run.copy) +
                         book(Phase::update, run.update) + book(Phase::other, run.other);
      rank.own_s->push_back(own);
      rank.step_s.push_back(own + book(Phase::exposed_wait, latest - extra[i]) +
                            book(Phase::exposed_transfer, exposed));
    }
  }
  record.communication.gradient_bytes = static_cast<std::int64_t>(all_bytes);
  record.window.steps = run.steps;
  record.window.samples = run.steps * record.global_batch;
  record.window.wall_s = record.ranks.front().wall_s;
  return record;
}

/// Repeats of one run.
inline std::vector<measure::Record> simulate(SimulatedRun run, int repeats) {
  std::vector<measure::Record> records;
  for (run.repeat = 0; run.repeat < repeats; ++run.repeat) records.push_back(simulate(run));
  return records;
}

}  // namespace paceline::analysis
