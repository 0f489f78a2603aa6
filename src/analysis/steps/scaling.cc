#include "analysis/steps/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/compare/cell_labels.h"
#include "analysis/compare/setup_groups.h"
#include "base/text.h"

namespace paceline::analysis {
namespace {

bool belongs(const Cell& cell, Mode mode) {
  if (cell.kind == "scale") return cell.scaling == name(mode) || cell.scaling == kBothScalings;
  if (cell.kind != "train") return false;
  return cell.record().batch_given_as == (mode == Mode::weak ? "local" : "global");
}

std::int64_t constant_batch_of(const Cell& cell, Mode mode) {
  return mode == Mode::weak ? cell.local_batch : cell.global_batch;
}

std::string describe_baseline(const Cell& cell) {
  const auto& communicator = cell.record().communication.communicator;
  const auto workers = base::counted(cell.workers, "worker");
  if (communicator.empty() || communicator == "none") return workers + " without any communicator";
  return fmt::format("{} inside the communicator '{}'", workers, communicator);
}

void fill_ratios(ScalingRow& row, const Cell& baseline, Mode mode) {
  const double growth = static_cast<double>(row.cell->workers) / baseline.workers;
  row.epoch = ratio(baseline.epoch_s, row.cell->epoch_s);
  if (mode == Mode::weak) {
    row.efficiency = ratio(baseline.step_s, row.cell->step_s);
    row.speedup = scaled(row.efficiency, growth);
  } else {
    // With the same global batch the number of steps is the same, so the ratio of epochs is that of steps,
    // which are measured directly.
    row.speedup = ratio(baseline.step_s, row.cell->step_s);
    row.efficiency = scaled(row.speedup, 1 / growth);
  }
}

/// `own`: the circumstances (such as the version) in which the batch was scaled, from which the baseline is
/// taken; null if there are none.
ScalingGroup make_group(std::int64_t batch, std::vector<const Cell*> cells, const Circumstances* own,
                        Mode mode) {
  ScalingGroup group;
  group.batch = batch;
  const auto is_own = [&](const Cell* cell) {
    return own == nullptr || circumstances(cell->record()) == *own;
  };
  std::ranges::stable_sort(cells, [&](const Cell* a, const Cell* b) {
    return a->workers != b->workers ? a->workers < b->workers : is_own(a) && !is_own(b);
  });
  for (const Cell* cell : cells)
    if (cell->is_measured() && group.baseline == nullptr && is_own(cell)) group.baseline = cell;
  if (group.baseline != nullptr) group.baseline_name = describe_baseline(*group.baseline);
  for (const Cell* cell : cells) {
    ScalingRow row;
    row.cell = cell;
    row.is_baseline = cell == group.baseline;
    if (cell->is_measured() && group.baseline != nullptr) {
      if (!row.is_baseline) row.verdict = compare(*group.baseline, *cell, Topic::scaling);
      row.has_ratios = row.verdict.comparable();
      if (row.has_ratios) fill_ratios(row, *group.baseline, mode);
      if (row.is_baseline) row.efficiency = row.speedup = row.epoch = exactly(1);
    }
    group.rows.push_back(std::move(row));
  }
  return group;
}

/// The circumstances in which the batch was scaled: those measured with several numbers of workers, including
/// the fewest of all. In the order of the cells.
std::vector<Circumstances> scaled_in(const std::vector<const Cell*>& members) {
  std::vector<Circumstances> order;
  std::map<Circumstances, std::set<int>> workers;
  int fewest = 0;
  for (const Cell* cell : members) {
    if (!cell->is_measured()) continue;
    const auto here = circumstances(cell->record());
    if (!workers.contains(here)) order.push_back(here);
    workers[here].insert(cell->workers);
    if (fewest == 0 || cell->workers < fewest) fewest = cell->workers;
  }
  std::erase_if(order, [&](const Circumstances& one) {
    return workers[one].size() < 2 || !workers[one].contains(fewest);
  });
  return order;
}

void append_groups(std::vector<ScalingGroup>& groups, std::int64_t batch,
                   const std::vector<const Cell*>& members, Mode mode) {
  const auto scaled = scaled_in(members);
  if (scaled.size() < 2) {
    groups.push_back(make_group(batch, members, scaled.empty() ? nullptr : &scaled.front(), mode));
    return;
  }
  std::vector<std::vector<const Cell*>> parts(scaled.size());
  for (const Cell* cell : members) {
    const auto own = std::ranges::find(scaled, circumstances(cell->record()));
    parts[own == scaled.end() ? 0 : static_cast<std::size_t>(own - scaled.begin())].push_back(cell);
  }
  std::vector<const Cell*> baselines;
  const std::size_t first = groups.size();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    groups.push_back(make_group(batch, parts[i], &scaled[i], mode));
    baselines.push_back(groups.back().baseline);
  }
  const auto texts = different_circumstances(baselines);
  for (std::size_t i = 0; i < texts.size(); ++i) groups[first + i].circumstances = texts[i];
}

/// Whether the cells of one batch allow a comparison of numbers of workers.
bool is_scaled(const std::vector<const Cell*>& cells) {
  std::set<int> workers;
  for (const Cell* cell : cells) {
    if (cell->kind == "scale") return true;
    workers.insert(cell->workers);
  }
  return workers.size() > 1 || are_joined_otherwise(cells);
}

}  // namespace

const char* name(Mode mode) { return mode == Mode::weak ? "weak" : "strong"; }

std::vector<ScalingGroup> scaling(std::span<const Cell> cells, Mode mode) {
  std::vector<ScalingGroup> groups;
  for (const CellGroup& subject : by_subject(cells)) {
    std::map<std::int64_t, std::vector<const Cell*>> by_batch;
    for (const Cell* cell : subject.cells)
      if (belongs(*cell, mode)) by_batch[constant_batch_of(*cell, mode)].push_back(cell);
    for (const auto& [batch, members] : by_batch) {
      if (!is_scaled(members)) continue;
      for (const CellGroup& part : by_setup(members, Place::workers)) {
        const std::size_t first = groups.size();
        append_groups(groups, batch, part.cells, mode);
        for (std::size_t i = first; i < groups.size(); ++i) {
          groups[i].subject = subject.name;
          groups[i].setup = part.name;
        }
      }
    }
  }
  return groups;
}

}  // namespace paceline::analysis
