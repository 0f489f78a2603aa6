/// The lists of cells of sweeps, scaling and convergence: pure functions of what is asked. In a sweep the
/// batch grows until, by the plan, memory or data no longer suffice.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "base/text.h"
#include "study/study.h"
#include "train/given/schedule.h"
#include "train/prepare/memory.h"
#include "train/run.h"

namespace paceline::study {

namespace {

PlannedCell sweep_cell(const train::Options& base, std::int64_t batch, int repeat) {
  PlannedCell cell{
      .id = fmt::format("sweep-b{}-r{}", batch, repeat), .kind = "sweep", .repeat = repeat, .options = base};
  cell.options.local_batch = batch;
  cell.options.global_batch = 0;
  return cell;
}

/// Why a batch cannot be measured. A batch that breaks a rule of the options is skipped for that reason; the
/// sweep continues.
struct Refusal {
  std::string reason;         ///< empty: it can be measured
  bool is_of_memory = false;  ///< by the plan
};

Refusal refusal(const train::Options& options, const train::Backend& backend, std::int64_t samples) {
  if (options.local_batch * options.workers > samples)
    return {fmt::format("exceeds the data set of {} training samples: every batch would be the whole set",
                        samples)};
  try {
    const auto setup = train::inspect(options, backend);
    if (setup.excess.empty()) return {};
    return {fmt::format("does not fit: the plan is {}", setup.excess), true};
  } catch (const base::Error& error) {
    if (error.kind() != base::ErrorKind::usage) throw;
    return {error.what()};
  }
}

/// A batch of a sweep that does not fit into the memory, computed in parts that do.
PlannedCell sweep_cell_in_parts(const train::Options& base, std::int64_t batch, std::int64_t part,
                                int repeat) {
  PlannedCell cell = sweep_cell(base, batch, repeat);
  cell.id = fmt::format("sweep-b{}-m{}-r{}", batch, part, repeat);
  cell.options.micro_batch = part;
  cell.note = fmt::format("a batch of {} does not fit into the memory: it is computed in micro-batches of {}",
                          batch, part);
  return cell;
}

/// Batches that grow by the factor, up to and including the first that cannot be measured. Beyond the memory
/// a few more are computed in micro-batches: their times show what a larger batch costs without more memory.
std::vector<PlannedCell> automatic_cells(const train::Options& base, const Axes& axes,
                                         const train::Backend& backend, std::int64_t samples) {
  constexpr int kBeyondMemory = 2;  // each step takes `batch_factor` times as long as the one before
  std::vector<PlannedCell> cells;
  std::int64_t batch = std::max(train::batch_unit(base), axes.batches.empty() ? 32 : axes.batches.front());
  for (;; batch *= axes.batch_factor) {
    cells.push_back(sweep_cell(base, batch, 0));
    const auto refused = refusal(cells.back().options, backend, samples);
    cells.back().skip = refused.reason;
    if (refused.reason.empty()) continue;
    if (!refused.is_of_memory || cells.size() == 1) return cells;
    break;
  }
  if (base.micro_batch > 0) return cells;  // they were in parts all along
  std::int64_t part = cells[cells.size() - 2].options.local_batch;
  for (int beyond = 0; beyond < kBeyondMemory; ++beyond, batch *= axes.batch_factor) {
    auto cell = sweep_cell_in_parts(base, batch, part, 0);
    auto refused = refusal(cell.options, backend, samples);
    // The loader has whole batches, so that parts may have to be smaller than the largest whole batch.
    while (refused.is_of_memory && part % axes.batch_factor == 0) {
      cell = sweep_cell_in_parts(base, batch, part /= axes.batch_factor, 0);
      refused = refusal(cell.options, backend, samples);
    }
    if (!refused.reason.empty()) break;
    cells.push_back(std::move(cell));
  }
  return cells;
}

/// Adds the largest batch that fits, between the last batch that did and the first that did not, unless the
/// sweep has it already.
void add_largest(std::vector<PlannedCell>& cells, const train::Options& base, const train::Backend& backend) {
  const std::int64_t largest = train::largest_batch(with_smallest_batch(base), backend);
  const auto same = [&](const PlannedCell& cell) { return cell.options.local_batch == largest; };
  if (largest == 0 || std::any_of(cells.begin(), cells.end(), same)) return;
  PlannedCell cell = sweep_cell(base, largest, 0);
  cell.skip = "the largest batch that memory and data set allow, by the plan; not timed";
  cell.fits = true;
  const auto after = std::find_if(cells.begin(), cells.end(), [&](const PlannedCell& other) {
    return other.options.local_batch > largest;
  });
  cells.insert(after, std::move(cell));
}

void require_mode(const std::string& mode) {
  if (mode != "weak" && mode != "strong" && mode != "both")
    train::refuse_options("--mode '{}' is unknown; known are weak, strong, both", mode);
}

PlannedCell scale_cell(const train::Options& base, const std::string& scaling, int workers,
                       std::int64_t batch, int repeat) {
  PlannedCell cell{.id = fmt::format("scale-{}-w{}-b{}-r{}", scaling, workers, batch, repeat),
                   .kind = "scale",
                   .scaling = scaling,
                   .repeat = repeat,
                   .options = base};
  cell.options.workers = workers;
  cell.options.local_batch = scaling == "weak" ? batch : 0;
  cell.options.global_batch = scaling == "strong" ? batch : 0;
  if (scaling == "strong" && batch % workers != 0)
    cell.skip = fmt::format("the global batch {} does not divide by {} workers", batch, workers);
  return cell;
}

/// Whether one cell serves both modes of scaling. A single worker always does; and 4 x 32 is a cell of the
/// weak series with local batch 32 and of the strong series with global batch 128.
bool is_of_both(const Axes& axes, const std::string& scaling, int workers, std::int64_t batch) {
  if (axes.mode != "both") return false;
  const bool is_weak = scaling == "weak";
  if (!is_weak && batch % workers != 0) return false;
  const std::int64_t in_the_other = is_weak ? batch * workers : batch / workers;
  return std::find(axes.batches.begin(), axes.batches.end(), in_the_other) != axes.batches.end();
}

/// Gives a worker the same number of threads in every cell, whatever the number of workers. Otherwise one
/// worker would use all cores, N workers would share the same cores, and the ideal speedup would not be N.
/// With more workers than cores each has one thread.
int threads_for_all(const std::vector<int>& workers, const CoresEach& cores_each) {
  int least = 0;
  for (const int count : workers) {
    const int each = cores_of_each(cores_each, count);
    if (each > 0) least = least == 0 ? each : std::min(least, each);
  }
  return std::max(1, least);
}

/// Default length of a convergence training: five times its longest warm-up (study.cc).
constexpr double kConvergeEpochs = 5;

/// The training of a variant; `name` stands for it in the id, if not empty.
PlannedCell converge_cell(const train::Options& base, const std::string& variant, int repeat,
                          std::string name = {}) {
  if (name.empty()) name = file_part(base::lower_case(variant));
  PlannedCell cell{.id = fmt::format("converge-{}-r{}", name, repeat),
                   .kind = "converge",
                   .variant = variant,
                   .repeat = repeat,
                   .options = base};
  cell.training = cell.id;
  cell.options.local_batch = 0;
  cell.options.seed += static_cast<std::uint64_t>(repeat);
  return cell;
}

/// Trainings with growing numbers of workers, each with the same local batch. The first number is the
/// baseline; every other number is trained twice: with the baseline's learning rate and with the linearly
/// scaled one.
std::vector<PlannedCell> worker_cells(const train::Options& asked, const ConvergeAxes& axes) {
  train::Options base = asked;
  base.lr_batch = axes.workers.front() * axes.baseline_batch;
  if (base.threads == 0) base.threads = threads_for_all(axes.workers, axes.cores_each);
  std::vector<PlannedCell> cells;
  for (int repeat = 0; repeat < axes.repeats; ++repeat)
    for (const int workers : axes.workers)
      for (const auto rule : {train::LrScaling::none, train::LrScaling::linear}) {
        const bool is_baseline = workers == axes.workers.front();
        if (is_baseline && rule != train::LrScaling::none) continue;
        const std::string count = base::counted(workers, "worker");
        const std::string variant =
            is_baseline ? count
                        : count + (rule == train::LrScaling::none ? ", kept rate" : ", linear scaling");
        auto& cell = cells.emplace_back(converge_cell(base, variant, repeat));
        cell.options.workers = workers;
        cell.options.global_batch = workers * axes.baseline_batch;
        cell.options.scale_lr = rule;
      }
  return cells;
}

/// Trainings of one batch, with the images in several orders.
std::vector<PlannedCell> shuffle_cells(const train::Options& asked, const ConvergeAxes& axes) {
  constexpr std::int64_t kWindows[]{0, 1, 8, 64};  // 0: global, which the others are compared with
  std::vector<PlannedCell> cells;
  for (int repeat = 0; repeat < axes.repeats; ++repeat)
    for (const auto window : kWindows) {
      if (window >= axes.shards) continue;
      const std::string variant = window == 0 ? "global" : fmt::format("window:{}", window);
      auto& cell = cells.emplace_back(converge_cell(asked, variant, repeat));
      cell.options.global_batch = axes.baseline_batch;
      cell.options.shuffle_window = window;
    }
  return cells;
}

/// Trainings of several batches to one target, each at several rates.
///
/// The best rate grows with the batch: linearly far below the critical batch, not at all far above it. Where
/// that batch is, the study is to find out. So the grid lies around what is between the two, the rate that is
/// scaled by the square root, in factors of two, with one more of them above it where their number is even:
/// rates of recipes are careful, and the best one is seldom far below the first that diverges.
std::vector<PlannedCell> batch_cells(const train::Options& asked, const ConvergeAxes& axes) {
  std::vector<PlannedCell> cells;
  for (int repeat = 0; repeat < axes.repeats; ++repeat)
    for (const auto batch : axes.batches) {
      train::Options scaled = asked;
      scaled.scale_lr = train::LrScaling::sqrt;
      const double middle = train::scaled_rate(scaled, batch).peak;
      for (int i = 0; i < axes.rates; ++i) {
        const auto rate = fmt::format("{:.3g}", std::ldexp(middle, i - (axes.rates - 1) / 2));
        auto& cell = cells.emplace_back(converge_cell(asked, fmt::format("batch {}, lr {}", batch, rate),
                                                      repeat, fmt::format("b{}-lr{}", batch, rate)));
        cell.options.global_batch = batch;
        cell.options.scale_lr = train::LrScaling::none;
        cell.options.lr = std::stod(rate);
      }
    }
  return cells;
}

}  // namespace

std::vector<PlannedCell> sweep_cells(const train::Options& base, const Axes& axes,
                                     const train::Backend& backend) {
  const std::int64_t samples = train::inspect(with_smallest_batch(base), backend).data.train_samples;

  std::vector<PlannedCell> first;
  if (axes.automatic_batches) {
    first = automatic_cells(base, axes, backend, samples);
  } else {
    for (const std::int64_t batch : axes.batches) {
      first.push_back(sweep_cell(base, batch, 0));
      first.back().skip = refusal(first.back().options, backend, samples).reason;
    }
  }
  add_largest(first, base, backend);

  std::vector<PlannedCell> cells = first;
  for (int repeat = 1; repeat < axes.repeats; ++repeat)
    for (const auto& cell : first)
      if (cell.skip.empty()) {
        const auto batch = cell.options.local_batch, part = cell.options.micro_batch;
        cells.push_back(part == base.micro_batch ? sweep_cell(base, batch, repeat)
                                                 : sweep_cell_in_parts(base, batch, part, repeat));
      }
  return cells;
}

std::string agreed_on(const std::vector<PlannedCell>& cells) {
  std::string text;
  for (const auto& cell : cells) text += (cell.fits ? "largest" : cell.id) + "\n";
  return text;
}

std::vector<PlannedCell> scale_cells(const train::Options& asked, const Axes& axes) {
  require_mode(axes.mode);
  train::Options base = asked;
  if (base.threads == 0) base.threads = threads_for_all(axes.workers, axes.cores_each);
  std::vector<PlannedCell> cells;
  for (int repeat = 0; repeat < axes.repeats; ++repeat)
    for (const std::string scaling : {"weak", "strong"}) {
      if (axes.mode != scaling && axes.mode != "both") continue;
      for (const std::int64_t batch : axes.batches)
        for (const int workers : axes.workers) {
          const bool serves_both = is_of_both(axes, scaling, workers, batch);
          if (serves_both && scaling == "strong") continue;  // measured as weak scaling
          cells.push_back(scale_cell(base, scaling, workers, batch, repeat));
          if (serves_both) cells.back().scaling = "both";
        }
    }
  return cells;
}

std::vector<PlannedCell> comm_cells(const train::Options& base, const Axes& axes, bool quick) {
  constexpr double kSeconds = 3, kQuickSeconds = 2, kMostQuickSeconds = 5;
  std::vector<PlannedCell> cells;
  if (base.device != "cpu" || train::is_data_parallel(base)) return cells;
  for (const int workers : axes.workers) {
    if (workers < 2 || cores_of_each(axes.cores_each, workers) < 1) continue;
    auto& cell = cells.emplace_back();
    cell.id = fmt::format("comm-w{}", workers);
    cell.kind = "comm";
    cell.options = with_smallest_batch(base);
    cell.options.workers = workers;
    cell.options.threads = 1;
  }
  const double each = kMostQuickSeconds / static_cast<double>(std::max<std::size_t>(1, cells.size()));
  for (PlannedCell& cell : cells) cell.collectives_s = quick ? std::min(kQuickSeconds, each) : kSeconds;
  return cells;
}

void count_shards(const train::Options& base, ConvergeAxes& axes, const train::Backend& backend) {
  if (!axes.shuffle) return;
  train::Options probe = with_smallest_batch(base);
  if (probe.epochs == 0 && probe.steps == 0) probe.epochs = 1;
  axes.shards = train::inspect(probe, backend).data.shards.value_or(0);
  if (axes.shards < 2)
    train::refuse_options(
        "--compare shuffle: '{}' is in {}, and windows need at least 2; give data in shards "
        "(shards:train-{{0000..0146}}.tar)",
        base.data, base::counted(axes.shards, "shard"));
}

std::vector<PlannedCell> converge_cells(const train::Options& asked, const ConvergeAxes& axes) {
  train::Options base = asked;
  base.window_steps = 0;
  if (base.epochs == 0 && base.steps == 0) base.epochs = kConvergeEpochs;
  if (!axes.workers.empty()) return worker_cells(base, axes);
  if (axes.shuffle) return shuffle_cells(base, axes);
  if (!axes.batches.empty()) return batch_cells(base, axes);
  const auto variants = axes.variants.empty() ? converge_variants() : axes.variants;
  std::vector<PlannedCell> cells;
  for (int repeat = 0; repeat < axes.repeats; ++repeat) {
    for (const auto& variant : variants) {
      if (needs_several_workers(variant) && base.workers < 2) continue;
      auto& cell = cells.emplace_back(converge_cell(base, variant, repeat));
      apply_variant(cell.options, variant, axes);
    }
  }
  return cells;
}

}  // namespace paceline::study
