/// The lists of cells of scaling and convergence: pure functions of what is asked.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/topology.h"
#include "study/study.h"

namespace paceline::study {
namespace {

void require_mode(const std::string& mode) {
  if (mode != "weak" && mode != "strong" && mode != "both")
    base::fail(base::ErrorKind::usage, "--mode '{}' is unknown; known are weak, strong, both", mode);
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

/// The same threads for a worker in every cell, whatever the number of workers: else one worker would have
/// all cores, N workers the same cores in parts, and the ideal would not be N. More workers than cores have
/// one each.
int threads_for_all(const std::vector<int>& workers, const CoresEach& cores_each) {
  int least = 0;
  for (const int count : workers) {
    const int each = cores_each ? cores_each(count) : base::usable_cores() / count;
    if (each > 0) least = least == 0 ? each : std::min(least, each);
  }
  return std::max(1, least);
}

/// One remedy more in each variant, all of them in the last; the words are those of the tables. A name has
/// all that the variant changes, and what it changes is read from its name: a table that praised "sync BN"
/// alone for what a warm-up gave would compare what nobody trained.
const std::vector<std::string> kVariants{"baseline",
                                         "large batch",
                                         "+ linear scaling",
                                         "+ linear, warm-up",
                                         "+ sqrt, warm-up, LARS",
                                         "+ linear, warm-up, sync BN",
                                         "+ sqrt, warm-up, LARS, sync BN"};

bool has(const std::string& variant, std::string_view word) {
  return variant.find(word) != std::string::npos;
}
bool has_sync_bn(const std::string& variant) { return has(variant, "sync BN"); }

/// LARS measures the learning rate in units of |w|/|g|: its base differs from SGD's by about 1/trust.
/// Source   You, Gitman, Ginsburg, "Large batch training of convolutional networks", 2017
constexpr double kLarsRate = 20;

/// How long convergence trains where nobody says: long enough that a warm-up is a part of it, not the whole.
constexpr double kConvergeEpochs = 5;
constexpr double kTrainingOverWarmup = 5;

void apply_variant(train::Options& options, const std::string& variant, const ConvergeAxes& axes) {
  options.lr_batch = axes.baseline_batch;
  if (variant == "baseline") options.workers = 1;
  options.local_batch = 0;
  options.global_batch = variant == "baseline" ? axes.baseline_batch : axes.large_batch;
  // LARS normalises by layer already: linear scaling would count twice.
  options.scale_lr = has(variant, "linear") ? train::LrScaling::linear
                     : has(variant, "sqrt") ? train::LrScaling::sqrt
                                            : train::LrScaling::none;
  if (has(variant, "warm-up"))
    options.schedule.warmup_epochs =
        axes.warmup_epochs >= 0 ? axes.warmup_epochs : std::min(1.0, options.epochs / kTrainingOverWarmup);
  if (has(variant, "LARS")) {
    options.rule = {.kind = engine::UpdateKind::lars,
                    .momentum = options.rule.momentum,
                    .weight_decay = options.rule.weight_decay};
    options.lr *= kLarsRate;
  }
  if (has_sync_bn(variant)) options.batch_norm = engine::BatchNormMode::synchronised;
}

std::string slug(const std::string& variant) {
  std::string text;
  for (const char letter : variant) {
    if (std::isalnum(static_cast<unsigned char>(letter)))
      text += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    else if (!text.empty() && text.back() != '-')
      text += '-';
  }
  return text;
}

/// Trainings of growing numbers of workers, each taking the same batch: the first number is the baseline, and
/// every other keeps its learning rate once and scales it linearly once.
std::vector<PlannedCell> worker_cells(const train::Options& asked, const ConvergeAxes& axes) {
  train::Options base = asked;
  base.local_batch = 0;
  base.lr_batch = axes.workers.front() * axes.baseline_batch;
  if (base.threads == 0) base.threads = threads_for_all(axes.workers, axes.cores_each);
  std::vector<PlannedCell> cells;
  for (int repeat = 0; repeat < axes.repeats; ++repeat)
    for (const int workers : axes.workers)
      for (const auto rule : {train::LrScaling::none, train::LrScaling::linear}) {
        const bool is_baseline = workers == axes.workers.front();
        if (is_baseline && rule != train::LrScaling::none) continue;
        const std::string count = fmt::format("{} worker{}", workers, workers == 1 ? "" : "s");
        const std::string variant =
            is_baseline ? count
                        : count + (rule == train::LrScaling::none ? ", kept rate" : ", linear scaling");
        PlannedCell cell{.id = fmt::format("converge-{}-r{}", slug(variant), repeat),
                         .kind = "converge",
                         .variant = variant,
                         .repeat = repeat,
                         .options = base};
        cell.training = cell.id;
        cell.options.workers = workers;
        cell.options.global_batch = workers * axes.baseline_batch;
        cell.options.scale_lr = rule;
        cell.options.seed = base.seed + static_cast<std::uint64_t>(repeat);
        cells.push_back(std::move(cell));
      }
  return cells;
}

}  // namespace

std::string agreed_on(const std::vector<PlannedCell>& cells) {
  std::string text;
  for (const auto& cell : cells) text += (cell.fits ? "largest" : cell.id) + "\n";
  return text;
}

std::vector<std::string> converge_variants() { return kVariants; }

std::vector<PlannedCell> scale_cells(const train::Options& asked, const Axes& axes) {
  require_mode(axes.mode);
  train::Options base = asked;
  if (base.threads == 0) base.threads = threads_for_all(axes.workers, axes.cores_each);
  std::vector<PlannedCell> cells;
  for (int repeat = 0; repeat < axes.repeats; ++repeat)
    for (const std::string scaling : {"weak", "strong"}) {
      if (axes.mode != scaling && axes.mode != "both") continue;
      for (const std::int64_t batch : axes.batches)
        for (const int workers : axes.workers)
          cells.push_back(scale_cell(base, scaling, workers, batch, repeat));
    }
  return cells;
}

std::vector<PlannedCell> converge_cells(const train::Options& asked, const ConvergeAxes& axes) {
  train::Options base = asked;
  base.window_steps = 0;
  if (base.epochs == 0 && base.steps == 0) base.epochs = kConvergeEpochs;
  if (!axes.workers.empty()) return worker_cells(base, axes);
  const auto& variants = axes.variants.empty() ? kVariants : axes.variants;
  std::vector<PlannedCell> cells;
  for (int repeat = 0; repeat < axes.repeats; ++repeat) {
    for (const auto& variant : variants) {
      if (std::find(kVariants.begin(), kVariants.end(), variant) == kVariants.end())
        base::fail(base::ErrorKind::usage, "variant '{}' is unknown; known are {}", variant,
                   fmt::join(kVariants, ", "));
      // One worker's batch norm already sees the whole global batch: there is nothing to synchronise.
      if (has_sync_bn(variant) && base.workers < 2) continue;
      PlannedCell cell{.id = fmt::format("converge-{}-r{}", slug(variant), repeat),
                       .kind = "converge",
                       .variant = variant,
                       .repeat = repeat,
                       .options = base};
      cell.training = cell.id;
      apply_variant(cell.options, variant, axes);
      cell.options.seed = base.seed + static_cast<std::uint64_t>(repeat);
      cells.push_back(std::move(cell));
    }
  }
  return cells;
}

}  // namespace paceline::study
