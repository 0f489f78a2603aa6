/// Times a few steps, for plans whose time no record tells.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <stop_token>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/plan_time.h"
#include "cli/screen/remaining_time.h"
#include "cluster/make_backend.h"
#include "measure/statistics.h"
#include "train/run.h"

namespace paceline::cli {
namespace {

using study::PlannedCell;

constexpr std::int64_t kSteps = 3;  ///< timed, after one that is not
constexpr double kLongestProbe_s = 4;
constexpr std::size_t kMostModels = 3;

/// A short timed window of the cell's training.
PlannedCell as_probe(const PlannedCell& cell, int workers, std::int64_t batch) {
  PlannedCell probe{.id = "calibration", .kind = "sweep", .options = cell.options};
  auto& options = probe.options;
  options.workers = workers;
  options.local_batch = batch;
  options.global_batch = 0;
  options.window_steps = kSteps;
  options.warmup_steps = 1;
  options.window_seconds = options.least_window_seconds = 0;
  options.epochs = 0;
  options.steps = options.pause_after_epochs = 0;
  options.early_stopping = 0;
  options.shard = 0;
  options.data_parallel = options.gradients_as_bf16 = false;
  options.placement = train::Placement::packed;
  options.out.clear();
  options.timeline.clear();
  options.resume.clear();
  options.resume_auto = false;
  options.started = base::Clock::now();
  return probe;
}

/// A short window that was run.
struct Probe {
  PlannedCell cell;
  measure::Record record;
  double seconds = 0;
};

/// Nothing if it cannot be run here: the time of its cells stays unknown.
std::optional<Probe> run_probe(const PlannedCell& cell) {
  const auto began = base::Clock::now();
  std::stop_source stop;
  train::Progress progress;
  progress.step = [&](std::int64_t, std::int64_t, double, double) {
    if (base::seconds_since(began) > 2 * kLongestProbe_s) stop.request_stop();
  };
  try {
    const auto backend =
        cluster::make_backend(cell.options.device, nullptr, cluster::emulation_of(cell.options));
    auto record = train::run(cell.options, backend, stop.get_token(), progress);
    if (record.ranks.empty() || record.ranks.front().step_s.empty()) return std::nullopt;
    record.status = "complete";  // also if it was stopped: its steps were timed
    return Probe{cell, std::move(record), base::seconds_since(began)};
  } catch (const base::Error&) {
    return std::nullopt;
  }
}

std::vector<Probe> time_model(const std::vector<PlannedCell>& cells) {
  std::vector<Probe> probes;
  const auto smallest = *std::ranges::min_element(cells, {}, &PlannedCell::local_batch);
  const auto [fewest, most] =
      std::ranges::minmax(cells, {}, [](const auto& cell) { return cell.options.workers; });
  const auto run = [&](int workers, std::int64_t batch) {
    if (auto probe = run_probe(as_probe(smallest, workers, batch))) probes.push_back(std::move(*probe));
  };
  run(fewest.options.workers, smallest.local_batch());
  if (probes.empty()) return probes;
  const double image_s = measure::quantile(probes.front().record.ranks.front().step_s, 0.5) /
                         static_cast<double>(smallest.local_batch());
  const auto is_short = [&](double images) { return (kSteps + 1) * image_s * images <= kLongestProbe_s; };
  std::int64_t largest = 0;
  for (const PlannedCell& cell : cells)
    if (cell.local_batch() > smallest.local_batch() && is_short(static_cast<double>(cell.local_batch())))
      largest = std::max(largest, cell.local_batch());
  if (largest > 0) run(fewest.options.workers, largest);
  if (most.options.workers > fewest.options.workers &&
      is_short(static_cast<double>(smallest.local_batch() * most.options.workers)))
    run(most.options.workers, smallest.local_batch());
  return probes;
}

}  // namespace

Calibration calibrate(const std::vector<PlannedCell>& cells, int cores) {
  const auto began = base::Clock::now();
  Calibration result{.seconds = std::vector<std::optional<double>>(cells.size()), .text = {}};
  std::set<std::string> models, timed;
  for (const PlannedCell& cell : cells)
    if (!cell.is_of_collectives() && models.size() < kMostModels) models.insert(cell.options.model);
  for (const std::string& model : models) {
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < cells.size(); ++i)
      if (!cells[i].is_of_collectives() && cells[i].options.model == model) places.push_back(i);
    auto of_model = study::subset(cells, places);
    const auto probes = time_model(of_model);
    if (probes.empty()) continue;
    for (const auto& probe : probes) of_model.push_back(probe.cell);
    RemainingTime times(of_model, cores);
    for (std::size_t i = 0; i < probes.size(); ++i) {
      const auto& options = probes[i].cell.options;
      times.note(places.size() + i, probes[i].record, probes[i].seconds);
      timed.insert(
          fmt::format("batch {} on {}", options.local_batch, base::counted(options.workers, "worker")));
    }
    for (std::size_t i = 0; i < places.size(); ++i) result.seconds[places[i]] = times.cost(i);
  }
  if (!timed.empty())
    result.text = fmt::format("{} steps each of {}, timed just now in {:.0f} s", kSteps,
                              fmt::join(timed, ", "), base::seconds_since(began));
  return result;
}

}  // namespace paceline::cli
