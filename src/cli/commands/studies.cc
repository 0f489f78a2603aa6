#include <fmt/format.h>

#include "cli/commands/assign_processes.h"
#include "cli/commands/commands.h"
#include "cluster/make_backend.h"
#include "measure/disturbance.h"
#include "study/search.h"
#include "study/settle.h"
#include "train/run.h"

namespace paceline::cli {
namespace {

/// Makes windows of a typed number of steps long enough to know of other programs. A typed time stays.
void lengthen_windows(Settings& settings) {
  if (!settings.is_given("window-seconds") && settings.train.window_steps > 0)
    settings.train.least_window_seconds = measure::kKnownWindow_s;
}

/// Runs the cells, and again those that decide the answer and that other programs disturbed.
int run_settled(const Settings& settings, const train::Backend& backend,
                std::vector<study::PlannedCell> cells) {
  if (settings.study.most_repeats > 0) {
    const auto spares = study::spare_cells(cells);
    cells.insert(cells.end(), spares.begin(), spares.end());
  }
  return run_cells(settings, backend, cells, study::run_settled);
}

}  // namespace

int sweep_command(const Settings& given) {
  Settings settings = given;
  lengthen_windows(settings);
  const auto backend = cluster::make_backend(settings.train.device);
  return run_settled(settings, backend, study::sweep_cells(settings.train, settings.study.sweep, backend));
}

int scale_command(const Settings& given) {
  Settings settings = for_processes(given);
  lengthen_windows(settings);
  return run_settled(
      settings, cluster::make_backend(settings.train.device, nullptr, cluster::emulation_of(settings.train)),
      study::scale_cells(settings.train, settings.study.scale));
}

int converge_command(const Settings& given) {
  Settings settings = for_processes(given);
  const auto backend = cluster::make_backend(settings.train.device);
  study::count_shards(settings.train, settings.study.converge, backend);
  return run_cells(settings, backend, study::converge_cells(settings.train, settings.study.converge));
}

int study_command(const Settings& given) {
  Settings settings = for_processes(given);
  auto& axes = settings.study;
  if (axes.quick)
    study::apply_quick(settings.train, axes, settings.given);
  else
    lengthen_windows(settings);
  settings.train.workers = workers_for_convergence(axes.scale.workers, axes.scale.cores_each);
  const auto backend = cluster::make_backend(settings.train.device);
  if (axes.with_converge) study::count_shards(settings.train, axes.converge, backend);
  return run_settled(settings, backend, study::study_cells(settings.train, axes, backend));
}

int search_command(const Settings& given) {
  Settings settings = for_processes(given);
  const auto backend = cluster::make_backend(settings.train.device);
  study::Search search{.configurations = settings.configurations, .how = settings.study.search};
  for (auto& one : search.configurations) one.options.workers = settings.train.workers;
  const auto data = train::inspect(search.configurations.front().options, backend).data;
  if (!data.validation_samples) {
    constexpr double kValidationSplit = 0.1;
    for (auto& one : search.configurations) one.options.validation_split = kValidationSplit;
    settings.notes.push_back(fmt::format(
        "the data has no validation part to choose on: a tenth of every training class is held back, as with "
        "--validation-split {:g}",
        kValidationSplit));
  }
  const auto cells = study::search_cells(search);
  if (search.how.halving && cells.front().stage.empty())
    settings.notes.push_back(
        "--halving changes nothing: there is nothing to drop between the first epoch and the last; it needs two "
        "configurations and --epochs 2 at least");
  return run_cells(settings, backend, cells,
                   [&](const std::vector<study::PlannedCell>& cells, const study::Runner& runner) {
                     return study::run_search(search, cells, runner);
                   });
}

}  // namespace paceline::cli
