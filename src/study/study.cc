/// The whole study as one list of cells, and what --quick means.

#include "study/study.h"

#include <algorithm>
#include <iterator>

#include "base/topology.h"

namespace paceline::study {
namespace {

bool is_given(const std::vector<measure::Setting>& given, measure::Setting setting) {
  return std::find(given.begin(), given.end(), setting) != given.end();
}

/// Threads of each of a sweep's workers. No other cell runs on the cores.
int threads_alone(const train::Options& base, const Axes& axes) {
  if (base.threads > 0) return base.threads;
  return axes.cores_each ? axes.cores_each(1) : base::usable_cores();
}

bool is_same_set_up(const PlannedCell& sweep, const PlannedCell& scale) {
  return scale.options.workers == 1 && scale.options.local_batch == sweep.options.local_batch &&
         scale.options.global_batch == 0 && scale.repeat == sweep.repeat;
}

/// One worker with some batch may occur both in the sweep and as the baseline of scaling. If it has the same
/// number of threads in both, the two set-ups agree in everything that can change a figure. It is then
/// measured once, as part of scaling.
void measure_once(std::vector<PlannedCell>& sweep, std::vector<PlannedCell>& scale,
                  const StudyOptions& options, const train::Options& base) {
  if (scale.empty() || options.sweep.repeats != options.scale.repeats) return;
  const int threads = scale.front().options.threads;  // the same in all of them
  if (threads_alone(base, options.scale) != threads) return;
  for (PlannedCell& cell : sweep)
    cell.options.threads = threads;  // the same here, so that all can be compared
  std::erase_if(sweep, [&](const PlannedCell& cell) {
    if (!cell.skip.empty()) return false;
    const auto same = std::find_if(scale.begin(), scale.end(),
                                   [&](const PlannedCell& other) { return is_same_set_up(cell, other); });
    if (same == scale.end()) return false;
    same->also = cell.kind;
    return true;
  });
}

}  // namespace

void apply_quick(train::Options& base, StudyOptions& options, const std::vector<measure::Setting>& given) {
  // Processor times are read in ticks of 10 ms: a shorter window cannot tell whether other programs ran.
  constexpr double kWindow_s = 1.25;
  constexpr std::int64_t kMostSteps = 16384;
  options.quick = true;
  if (!is_given(given, "model")) base.model = "resnet8-cifar";
  if (!is_given(given, "window-steps")) base.window_steps = kMostSteps;
  if (!is_given(given, "warmup-steps")) base.warmup_steps = 1;
  if (!is_given(given, "window-seconds")) base.window_seconds = kWindow_s;
  if (!is_given(given, "repeats")) options.sweep.repeats = options.scale.repeats = 2;
  if (!is_given(given, "batches")) {
    options.sweep.batches = {8, 32, 128, 512};
    options.sweep.automatic_batches = false;
    options.scale.batches = {32, 128, 512};
  }
  if (!is_given(given, "workers")) {
    // Workers that share a core answer no question of this study.
    const auto has_core = [&](int workers) {
      return options.scale.cores_each ? options.scale.cores_each(workers) > 0
                                      : workers <= base::usable_cores();
    };
    std::erase_if(options.scale.workers, [&](int workers) { return workers > 2 && !has_core(workers); });
  }
  if (!is_given(given, "mode")) options.scale.mode = "both";
  if (!is_given(given, "epochs")) base.epochs = 3;
  if (!is_given(given, "data")) base.data = "synthetic,train=7680,test=2000";
  if (!is_given(given, "baseline-batch")) options.converge.baseline_batch = 64;
  if (!is_given(given, "large-batch")) options.converge.large_batch = 512;
  // The remedies that give back most; each by itself, and all together, are left to `converge`.
  if (options.converge.variants.empty())
    options.converge.variants = {"baseline", "large batch", "+ linear, warm-up", "+ sqrt, warm-up, LARS"};
  // With few updates, a rate that suits a small batch diverges once it is scaled. So begin lower.
  if (!is_given(given, "lr") && !is_given(given, "optimizer")) base.lr = 0.05;
}

std::vector<PlannedCell> study_cells(const train::Options& base, const StudyOptions& options,
                                     const train::Backend& backend) {
  std::vector<PlannedCell> cells;
  const auto append = [&](std::vector<PlannedCell> more) {
    std::move(more.begin(), more.end(), std::back_inserter(cells));
  };
  std::vector<PlannedCell> sweep, scale;
  if (options.with_sweep) {
    train::Options one = base;
    one.workers = 1;
    sweep = sweep_cells(one, options.sweep, backend);
  }
  if (options.with_scale) scale = scale_cells(base, options.scale);
  measure_once(sweep, scale, options, base);
  append(std::move(sweep));
  append(std::move(scale));
  if (options.with_scale && options.with_comm) append(comm_cells(base, options.scale, options.quick));
  if (options.with_converge) append(converge_cells(base, options.converge));
  return cells;
}

}  // namespace paceline::study
