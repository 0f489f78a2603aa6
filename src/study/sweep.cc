/// The cells of a batch sweep: the batch grows until, by the plan, memory or data no longer suffice.

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "study/study.h"
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

/// Why a batch cannot be measured; empty if it can. A batch that breaks a rule of the options is skipped for
/// that reason; the sweep continues.
std::string refusal(const train::Options& options, const train::Backend& backend, std::int64_t samples) {
  if (options.local_batch * options.workers > samples)
    return fmt::format("exceeds the data set of {} training samples: every batch would be the whole set",
                       samples);
  try {
    const auto setup = train::inspect(options, backend);
    if (!setup.excess.empty()) return fmt::format("does not fit: the plan is {}", setup.excess);
  } catch (const base::Error& error) {
    if (error.kind() != base::ErrorKind::usage) throw;
    return error.what();
  }
  return "";
}

/// Batches that grow by the factor, up to and including the first that cannot be measured.
std::vector<PlannedCell> automatic_cells(const train::Options& base, const Axes& axes,
                                         const train::Backend& backend, std::int64_t samples) {
  std::vector<PlannedCell> cells;
  for (std::int64_t batch =
           std::max(train::batch_unit(base), axes.batches.empty() ? 32 : axes.batches.front());
       ; batch *= axes.batch_factor) {
    cells.push_back(sweep_cell(base, batch, 0));
    cells.back().skip = refusal(cells.back().options, backend, samples);
    if (!cells.back().skip.empty()) return cells;
  }
}

/// Adds the largest batch that fits, between the last batch that did and the first that did not, unless the
/// sweep has it already.
void add_largest(std::vector<PlannedCell>& cells, const train::Options& base, const train::Backend& backend) {
  train::Options options = base;
  options.global_batch = 0;
  options.local_batch = train::batch_unit(base);
  const std::int64_t largest = train::largest_batch(options, backend);
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

}  // namespace

std::vector<PlannedCell> sweep_cells(const train::Options& base, const Axes& axes,
                                     const train::Backend& backend) {
  train::Options probe = base;
  probe.local_batch = train::batch_unit(base);
  probe.global_batch = 0;
  const std::int64_t samples = train::inspect(probe, backend).data.train_samples;

  std::vector<PlannedCell> first;
  if (axes.automatic_batches) {
    first = automatic_cells(base, axes, backend, samples);
  } else {
    for (const std::int64_t batch : axes.batches) {
      first.push_back(sweep_cell(base, batch, 0));
      first.back().skip = refusal(first.back().options, backend, samples);
    }
  }
  add_largest(first, base, backend);

  std::vector<PlannedCell> cells = first;
  for (int repeat = 1; repeat < axes.repeats; ++repeat)
    for (const auto& cell : first)
      if (cell.skip.empty()) cells.push_back(sweep_cell(base, cell.options.local_batch, repeat));
  return cells;
}

}  // namespace paceline::study
