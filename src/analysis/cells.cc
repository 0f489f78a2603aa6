#include "analysis/cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "analysis/cell_labels.h"
#include "analysis/consistency.h"
#include "analysis/record_times.h"
#include "measure/setting.h"

namespace paceline::analysis {
namespace {

using measure::Record;

bool is_release(const std::string& build) { return build == "Release" || build == "RelWithDebInfo"; }

/// Whether its figures may be used: one that contradicts itself stands in the tables without any.
bool is_measured(const Record& record) {
  if (contradiction(record)) return false;
  return (record.status == "complete" || record.status == "interrupted") && !record.ranks.empty() &&
         record.window.steps > 0 && !record.ranks.front().step_s.empty();
}

/// Why nothing of a record that is not measured stands in its cell.
std::string reason_of(const Record& record) {
  if (const auto wrong = contradiction(record)) return "its record contradicts itself: " + *wrong;
  return record.reason;
}

/// What was asked apart from the precision.
std::string configuration(const Record& record) {
  std::string key =
      fmt::format("{}|{}|{}|{}|{}|{}|{}|{}", record.kind, record.scaling, record.variant, record.workers,
                  record.local_batch, record.global_batch, record.model.name, record.data.spec);
  for (const auto& [name, value] : record.settings)
    if (!measure::is_of_window(name) && measure::role_of(name) != measure::SettingRole::precision)
      key += fmt::format("|{}={}", name, value);
  return key;
}

/// What was asked: known of every record, run or not.
std::string asked(const Record& record) {
  const auto* precision = measure::find_text(record.settings, "precision");
  return configuration(record) + (precision == nullptr ? "" : "|" + *precision);
}

/// And what it was run on and as; the precision is the one that "auto" came to.
std::string measured_key(const Record& record) {
  const auto& machine = record.environment;
  std::string key = configuration(record) + changes_at_resumes(record);
  for (const auto& [name, value] : circumstances(record)) key += fmt::format("|{}={}", name, value);
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", key, machine.cpu, machine.cores, machine.build,
                     record.threads_per_worker, record.precision, record.device,
                     record.device_name.value_or(""), record.window.unit, record.model.parameters,
                     record.model.training_flops);
}

/// Whether nothing that is known of its circumstances is otherwise there: of what was not run less is known.
bool may_be_of(const Record& record, const Cell& cell) {
  const auto there = circumstances(cell.record());
  const auto here = circumstances(record);
  return std::all_of(here.begin(), here.end(), [&](const auto& one) {
    const auto found = there.find(one.first);
    return found == there.end() || found->second == one.second;
  });
}

Cell begin_cell(const Record& record) {
  Cell cell;
  cell.kind = record.kind;
  cell.scaling = record.scaling;
  cell.variant = record.variant;
  cell.label = record.local_batch * record.workers == record.global_batch
                   ? fmt::format("b {}, N {}", record.local_batch, record.workers)
                   : fmt::format("B {}, N {}", record.global_batch, record.workers);
  cell.workers = record.workers;
  cell.threads_per_worker = record.threads_per_worker;
  cell.local_batch = record.local_batch;
  cell.global_batch = record.global_batch;
  cell.debug_build = !record.environment.build.empty() && !is_release(record.environment.build);
  cell.synthetic = record.data.synthetic;
  cell.emulated = emulated(record);
  cell.status = record.status;
  cell.reason = record.reason;
  cell.steps_per_epoch = record.data.steps_per_epoch;
  cell.train_samples = record.data.train_samples;
  if (contradiction(record)) {
    cell.status = "left out";
    cell.reason = reason_of(record);
  }
  return cell;
}

void finish(Cell& cell) {
  std::vector<std::vector<double>> steps;
  std::vector<std::vector<double>> epochs;
  std::size_t whole_epochs = 0;
  for (const Record* record : cell.records) {
    cell.oversubscribed = cell.oversubscribed || record->oversubscribed;
    if (!is_measured(*record)) continue;
    steps.push_back(step_seconds(*record));
    cell.steps_measured += static_cast<std::int64_t>(steps.back().size());
    epochs.push_back(epoch_seconds(*record));
    whole_epochs += epochs.back().size();
  }
  if (steps.empty()) return;
  cell.step_s = pooled(steps);
  cell.images_per_s = over(static_cast<double>(cell.global_batch), cell.step_s);
  cell.epoch_measured = whole_epochs > 0;
  if (cell.epoch_measured) {
    const double all_images = cell.full_steps() / static_cast<double>(cell.steps_per_epoch);
    cell.epoch_s = scaled(pooled(epochs), all_images);
    cell.epoch_basis =
        whole_epochs == 1 ? "one measured epoch" : fmt::format("median of {} epochs", whole_epochs);
  } else {
    cell.epoch_s = scaled(cell.step_s, cell.full_steps());
    cell.epoch_basis = fmt::format("from {} steps", cell.steps_measured);
  }
}

/// Cells that only a setting tells apart have it in their labels: else two rows of a table would be called
/// the same.
void tell_apart(std::vector<Cell>& cells) {
  std::map<std::string, std::vector<Cell*>> alike;
  for (Cell& cell : cells)
    alike[fmt::format("{}|{}|{}|{}", cell.kind, cell.scaling, cell.variant, cell.label)].push_back(&cell);
  for (const auto& [label, group] : alike) {
    const auto apart = differences({group.begin(), group.end()});
    for (std::size_t i = 0; i < group.size(); ++i)
      if (!apart[i].empty()) group[i]->label += ", " + apart[i];
  }
}

}  // namespace

std::vector<Cell> make_cells(std::span<const Record> records) {
  std::vector<Cell> cells;
  std::map<std::string, std::size_t> by_key;
  std::map<std::string, std::vector<std::size_t>> by_asked;
  // They have analyses of their own: collectives.h, evaluation.h, search.h.
  const auto has_no_cell = [](const Record& record) {
    return record.kind == "comm" || record.kind == "evaluate" || record.kind == "search";
  };
  for (const Record& record : records) {
    if (has_no_cell(record) || !is_measured(record)) continue;
    const auto [found, is_new] = by_key.try_emplace(measured_key(record), cells.size());
    if (is_new) {
      by_asked[asked(record)].push_back(cells.size());
      cells.push_back(begin_cell(record));
    }
    Cell& cell = cells[found->second];
    if (record.status == "complete") {
      cell.status = record.status;
      cell.reason.clear();
    }
    cell.records.push_back(&record);
  }
  // What was not measured stands beside what was, of several versions beside its own. What failed, or
  // contradicts itself, in circumstances in which nothing was measured is no repeat of what others did.
  const auto cell_of_unmeasured = [&](const Record& record) -> Cell& {
    auto& alike = by_asked[asked(record)];
    const auto own = std::find_if(alike.begin(), alike.end(),
                                  [&](std::size_t at) { return may_be_of(record, cells[at]); });
    if (own != alike.end()) return cells[*own];
    const bool is_not_run = record.status == "skipped" || record.status == "interrupted";
    if (!alike.empty() && is_not_run) return cells[alike.front()];
    alike.push_back(cells.size());
    cells.push_back(begin_cell(record));
    cells.back().records.push_back(&record);
    return cells.back();
  };
  for (const Record& record : records) {
    if (has_no_cell(record) || is_measured(record)) continue;
    Cell& cell = cell_of_unmeasured(record);
    if (!is_measured(*cell.records.front())) continue;
    const std::string reason = reason_of(record);
    cell.lost_repeats.push_back(reason.empty() ? record.status : reason);
    if (record.status == "failed" && !record.loss) cell.failed_repeats.push_back(&record);
  }
  for (Cell& cell : cells) finish(cell);
  tell_apart(cells);
  // Cells that were not run stand where their records did.
  std::stable_sort(cells.begin(), cells.end(),
                   [](const Cell& a, const Cell& b) { return a.records.front() < b.records.front(); });
  return cells;
}

}  // namespace paceline::analysis
