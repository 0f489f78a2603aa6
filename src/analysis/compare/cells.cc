#include "analysis/compare/cell.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "analysis/compare/cell_labels.h"
#include "analysis/compare/consistency.h"
#include "measure/setting.h"
#include "measure/statistics.h"

namespace paceline::analysis {
namespace {

using measure::Disturbance;
using measure::Record;

/// Whether the record's figures may be used. A record that contradicts itself appears in the tables without
/// figures.
bool has_usable_figures(const Record& record) {
  if (contradiction(record)) return false;
  const bool has_measured =
      record.status == "complete" || record.status == "interrupted" || record.status == "running";
  return has_measured && !record.ranks.empty() && record.window.steps > 0 &&
         !record.ranks.front().step_s.empty();
}

/// Why a record that is not measured gives its cell no figures.
std::string reason_of(const Record& record) {
  if (const auto wrong = contradiction(record)) return "its record contradicts itself: " + *wrong;
  return record.reason;
}

/// A separator that occurs in no name and no text.
constexpr char kBetween = '\x1f';

/// A key of what was asked for, which every record knows, run or not.
std::string asked(const Record& record) {
  std::string key;
  for (const std::string* text :
       {&record.kind, &record.scaling, &record.variant, &record.model.name, &record.data.spec})
    key += *text + kBetween;
  for (const std::int64_t number : {std::int64_t{record.workers}, record.local_batch, record.global_batch})
    key += std::to_string(number) + kBetween;
  for (const auto& [name, value] : record.settings)
    if (!measure::is_of_window(name)) key += fmt::format("{}{}{}{}", name, kBetween, value, kBetween);
  return key;
}

/// A key of the whole set-up: records with the same key are repeats. Weak or strong is left out, because a
/// cell of scaling ran in the same way for both.
std::string measured_key(const Setup& setup) {
  const bool is_scaled = text_of(setup, "kind") == "scale";
  std::string key;
  for (const SetupEntry& entry : setup)
    if (!is_scaled || entry.name != "scaling" || entry.kind != SetupKind::part)
      key += fmt::format("{}{}{}{}{}{}", static_cast<int>(entry.kind), kBetween, entry.name, kBetween,
                         entry.text, kBetween);
  return key;
}

/// Whether the run began; only then is its number of processes known.
bool has_begun(const Record& record) { return !record.device.empty(); }

/// Whether the record can belong to the cell: everything known of its set-up agrees with the cell's. A record
/// without measurements knows less.
bool may_be_of(const Record& record, const Cell& cell) {
  const auto is_as_there = [&](const SetupEntry& entry) {
    const bool is_told = entry.kind == SetupKind::circumstance || entry.kind == SetupKind::machine ||
                         entry.name == "library" || entry.name == "launcher" ||
                         (entry.name == "processes" && has_begun(record));
    if (!is_told) return true;
    const auto there = text_of(cell.setup, entry.name);
    return there.empty() || there == entry.text;
  };
  const Setup here = setup(record);
  return std::ranges::all_of(here, is_as_there);
}

Cell begin_cell(const Record& record) {
  Cell cell;
  cell.kind = record.kind;
  cell.scaling = record.scaling;
  cell.is_in_sweep = record.kind == "sweep" || record.also == "sweep";
  cell.variant = record.variant;
  cell.label = record.local_batch * record.workers == record.global_batch
                   ? fmt::format("b {}, N {}", record.local_batch, record.workers)
                   : fmt::format("B {}, N {}", record.global_batch, record.workers);
  cell.setup = setup(record);
  cell.workers = record.workers;
  cell.threads_per_worker = record.threads_per_worker;
  cell.local_batch = record.local_batch;
  cell.global_batch = record.global_batch;
  cell.debug_build = !record.environment.build.empty() && !is_optimised(record);
  cell.synthetic = record.data.synthetic;
  cell.emulated = emulated(record);
  cell.status = contradiction(record) ? "left out" : record.status;
  cell.reason = reason_of(record);
  return cell;
}

void finish_cell(Cell& cell) {
  std::vector<std::vector<double>> steps;
  std::vector<std::vector<double>> epochs;
  std::size_t whole_epochs = 0;
  for (const Record* record : cell.records) {
    cell.oversubscribed = cell.oversubscribed || record->oversubscribed;
    if (!has_usable_figures(*record)) continue;
    steps.push_back(step_seconds(*record));
    cell.steps_measured += record->window.steps;
    epochs.push_back(epoch_seconds(*record));
    whole_epochs += epochs.back().size();
  }
  if (steps.empty()) return;
  cell.step_s = pooled(steps);
  cell.images_per_s = over(static_cast<double>(cell.global_batch), cell.step_s);
  cell.epoch_measured = whole_epochs > 0;
  if (cell.epoch_measured) {
    const double all_images = cell.full_steps() / static_cast<double>(cell.record().data.steps_per_epoch);
    cell.epoch_s = scaled(pooled(epochs), all_images);
    cell.epoch_basis =
        whole_epochs == 1 ? "one measured epoch" : fmt::format("median of {} epochs", whole_epochs);
  } else {
    cell.epoch_s = scaled(cell.step_s, cell.full_steps());
    cell.epoch_basis = fmt::format("from {} steps", cell.step_s.n);
  }
}

/// Adds to the labels the settings that tell cells apart. Otherwise two rows of a table would have the same
/// name.
void tell_cells_apart(std::vector<Cell>& cells) {
  std::vector<std::string> names;
  std::vector<const Cell*> all;
  for (const Cell& cell : cells) {
    names.push_back(fmt::format("{}|{}|{}|{}", cell.kind, cell.scaling, cell.variant, cell.label));
    all.push_back(&cell);
  }
  const auto apart = differences_within(names, all, [](const auto& alike) { return differences(alike); });
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (!apart[i].empty()) cells[i].label += ", " + apart[i];
}

/// Adds a record without figures to its cell. Its reason is kept if the cell does not give it already.
void add_lost(Cell& cell, const Record& record) {
  cell.lost.push_back(&record);
  const bool is_measured_cell = has_usable_figures(*cell.records.front());
  std::string reason = reason_of(record);
  if (reason.empty()) reason = record.status;
  if (!is_measured_cell && (reason == cell.reason || reason == cell.status)) return;
  cell.lost_repeats.push_back(std::move(reason));
  if (is_measured_cell && record.status == "failed" && !record.loss) cell.failed_repeats.push_back(&record);
}

/// Moves the records from `first` on to the lost ones, each with the reason.
void set_aside(Cell& cell, std::vector<const Record*>::iterator first, const std::string& why_unknown) {
  for (auto at = first; at != cell.records.end(); ++at) {
    const Record& record = **at;
    cell.lost.push_back(&record);
    cell.lost_repeats.push_back(fmt::format("{} in repeat {}",
                                            measure::disturbance_of(record) == Disturbance::disturbed
                                                ? measure::text_about_disturbance(record)
                                                : why_unknown,
                                            record.repeat));
  }
  cell.records.erase(first, cell.records.end());
}

/// Keeps the repeats of a timed cell that are most certainly undisturbed. All records of a training stay: the
/// disturbance does not affect its accuracies.
void set_disturbed_aside(Cell& cell) {
  double known_s = 0, unknown_s = 0;
  for (const Record* record : cell.records) {
    const Disturbance one = measure::disturbance_of(*record);
    if (one == Disturbance::none) known_s += record->window.wall_s;
    if (one == Disturbance::maybe) unknown_s += record->window.wall_s;
    cell.competitors = std::max(cell.competitors, measure::competitors(*record));
  }
  const Disturbance kept = known_s > unknown_s ? Disturbance::none
                           : unknown_s > 0     ? Disturbance::maybe
                                               : Disturbance::disturbed;
  const bool any_disturbed = std::ranges::any_of(cell.records, [](const Record* record) {
    return measure::disturbance_of(*record) == Disturbance::disturbed;
  });
  cell.disturbance = !cell.is_timed() && any_disturbed ? Disturbance::disturbed : kept;
  // A disturbed run that was no slower than those kept shows a rate that the cell reaches: it stays. Not one
  // that stood still: its steps may be as fast, but its time is not.
  double kept_s = std::numeric_limits<double>::infinity();
  for (const Record* record : cell.records)
    if (measure::disturbance_of(*record) <= kept)
      kept_s = std::min(kept_s, measure::quantile(step_seconds(*record), 0.5));
  const auto is_kept = [&](const Record* record) {
    return measure::disturbance_of(*record) <= kept ||
           (!measure::stood_still(*record) && measure::quantile(step_seconds(*record), 0.5) < kept_s);
  };
  const auto first = std::stable_partition(cell.records.begin(), cell.records.end(), is_kept);
  if (cell.is_timed())
    set_aside(cell, first, "it is not known whether other programs worked (its window was too short)");
}

/// Records of these kinds have analyses of their own: steps/bandwidth.h, trainings/evaluation.h.
bool has_no_cell(const Record& record) {
  return record.kind == "comm" || record.kind == "evaluate" || record.kind == "search";
}

/// The measured records, repeats joined. `by_asked`: the cells of each key.
std::vector<Cell> cells_of_measured(std::span<const Record> records,
                                    std::map<std::string, std::vector<std::size_t>>& by_asked) {
  std::vector<Cell> cells;
  std::map<std::string, std::size_t> by_key;
  for (const Record& record : records) {
    if (has_no_cell(record) || !has_usable_figures(record)) continue;
    const auto [found, is_new] = by_key.try_emplace(measured_key(setup(record)), cells.size());
    if (is_new) {
      by_asked[asked(record)].push_back(cells.size());
      cells.push_back(begin_cell(record));
    }
    Cell& cell = cells[found->second];
    if (record.scaling != cell.scaling) cell.scaling = kBothScalings;
    cell.is_in_sweep = cell.is_in_sweep || record.also == "sweep";
    if (record.status == "complete") {
      cell.status = record.status;
      cell.reason.clear();
    }
    cell.records.push_back(&record);
  }
  for (Cell& cell : cells) set_disturbed_aside(cell);
  return cells;
}

}  // namespace

std::vector<Cell> make_cells(std::span<const Record> records) {
  std::map<std::string, std::vector<std::size_t>> by_asked;
  std::vector<Cell> cells = cells_of_measured(records, by_asked);
  // A record that was not measured joins the measured cell of the same request, if there are several versions
  // that of its own version. A record that failed, or contradicts itself, in circumstances in which nothing
  // was measured gets a cell of its own.
  const auto add_unmeasured = [&](const Record& record) {
    auto& alike = by_asked[asked(record)];
    const auto own =
        std::ranges::find_if(alike, [&](std::size_t at) { return may_be_of(record, cells[at]); });
    const bool is_not_run = record.status == "skipped" || record.status == "interrupted";
    if (own != alike.end()) return add_lost(cells[*own], record);
    if (!alike.empty() && is_not_run) return add_lost(cells[alike.front()], record);
    alike.push_back(cells.size());
    cells.push_back(begin_cell(record));
    cells.back().records.push_back(&record);
  };
  for (const Record& record : records)
    if (!has_no_cell(record) && !has_usable_figures(record)) add_unmeasured(record);
  for (Cell& cell : cells) finish_cell(cell);
  tell_cells_apart(cells);
  // Cells that were not run keep the place of their records.
  std::ranges::stable_sort(cells, {}, [](const Cell& cell) { return cell.records.front(); });
  return cells;
}

}  // namespace paceline::analysis
