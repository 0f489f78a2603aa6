/// The whole study as one list of cells, and what --quick means.

#include "study/study.h"

#include <algorithm>
#include <iterator>

#include "study/settle.h"

namespace paceline::study {
namespace {

bool is_given(const std::vector<measure::Setting>& given, measure::Setting setting) {
  return std::find(given.begin(), given.end(), setting) != given.end();
}

}  // namespace

void apply_quick(train::Options& base, StudyOptions& options, const std::vector<measure::Setting>& given) {
  options.quick = true;
  if (!is_given(given, "model")) base.model = "resnet8-cifar";
  if (!is_given(given, "window-steps")) base.window_steps = 5;
  if (!is_given(given, "warmup-steps")) base.warmup_steps = 1;
  if (!is_given(given, "window-seconds")) base.window_seconds = 3;
  if (!is_given(given, "repeats")) options.sweep.repeats = options.scale.repeats = 3;
  if (!is_given(given, "batches")) {
    options.sweep.batches = {8, 16, 32, 64, 128, 256, 512};
    options.sweep.automatic_batches = false;
    options.scale.batches = {32, 128, 512};
  }
  if (!is_given(given, "mode")) options.scale.mode = "both";
  if (!is_given(given, "epochs")) base.epochs = 3;
  if (!is_given(given, "data")) base.data = "synthetic,train=10240,test=2000";
  if (!is_given(given, "baseline-batch")) options.converge.baseline_batch = 64;
  if (!is_given(given, "large-batch")) options.converge.large_batch = 512;
  // One remedy more in each variant; all of them together are left to `converge`, which trains for longer.
  if (options.converge.variants.empty()) {
    options.converge.variants = converge_variants();
    options.converge.variants.pop_back();
  }
  // With few updates a rate that is good for a small batch diverges once it is scaled: begin lower.
  if (!is_given(given, "lr") && !is_given(given, "optimizer")) base.lr = 0.05;
}

std::vector<PlannedCell> study_cells(const train::Options& base, const StudyOptions& options,
                                     const train::Backend& backend) {
  std::vector<PlannedCell> cells;
  const auto append = [&](std::vector<PlannedCell> more) {
    std::move(more.begin(), more.end(), std::back_inserter(cells));
  };
  if (options.with_sweep) {
    train::Options one = base;
    one.workers = 1;
    append(sweep_cells(one, options.sweep, backend));
  }
  if (options.with_scale) append(scale_cells(base, options.scale));
  if (options.with_converge) append(converge_cells(base, options.converge));
  append(spare_cells(cells));
  return cells;
}

}  // namespace paceline::study
