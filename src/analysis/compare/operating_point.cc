#include "analysis/compare/operating_point.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include "analysis/compare/interval.h"
#include "analysis/compare/setup_groups.h"
#include "base/text.h"

namespace paceline::analysis {
namespace {

using measure::Disturbance;

/// Sorts cells by speed, the fastest first; see fastest().
void sort_by_speed(std::vector<const Cell*>& cells) {
  std::ranges::stable_sort(cells, {}, [](const Cell* cell) {
    const auto& rate = cell->images_per_s;
    return std::tuple(-rate.median, rate.high - rate.low, cell->global_batch);
  });
}

bool overlaps(const Estimate& best, const Estimate& other) {
  if (has_interval(best) && has_interval(other)) return other.high >= best.low;
  return other.median >= (1 - kTie) * best.median;
}

bool lies_within(const Estimate& best, const Estimate& other) {
  return has_interval(other) && other.low >= (1 - kTie) * best.median;
}

/// Why a measured cell is not recommended; empty if it is.
std::string reason_against(const Cell& cell) {
  if (cell.status != "complete") return cell.status;
  if (cell.shares_gpus()) return cell.shares();
  if (cell.oversubscribed)
    return fmt::format("{} threads on {}", cell.workers * cell.threads_per_worker,
                       base::counted(cores_used(cell.record()), "core"));
  return "";
}

/// The set-up without its kind and its batch.
Setup apart_from_batch(const Cell& cell) {
  return some_of(cell.setup, [](const SetupEntry& entry) {
    const bool is_of_batch = entry.kind == SetupKind::part ||
                             (entry.kind == SetupKind::size && entry.name != "workers") ||
                             entry.kind == SetupKind::circumstance;
    const bool is_batch = entry.kind == SetupKind::setting && entry.name.ends_with("batch");
    return !is_of_batch && !is_batch;
  });
}

/// Whether all cells were disturbed all the time, by about the same programs. The cores that those got are no
/// fixed number: beside a run of one worker another program has a core, beside one of two it shares them.
bool has_constant_load(const std::vector<const Cell*>& cells) {
  if (cells.size() < 2) return false;  // nothing to compare
  std::vector<double> of_cells;
  std::set<int> threads, competitors;
  for (const Cell* cell : cells) {
    if (cell->disturbance != Disturbance::disturbed) return false;
    double core_s = 0, wall_s = 0;
    for (const measure::Record* record : cell->records) {
      if (measure::stood_still(*record)) return false;                            // once, and not in all
      core_s += record->window.others_cores.value_or(0) * record->window.wall_s;  // 0: on a GPU alone
      wall_s += record->window.wall_s;
    }
    of_cells.push_back(core_s / wall_s);
    threads.insert(cell->workers * cell->threads_per_worker);
    competitors.insert(cell->competitors);
  }
  const auto [least, most] = std::ranges::minmax(of_cells);
  if (most <= 0) return competitors.size() == 1;  // on GPUs, where nobody knows how much they computed
  // Beside as many threads of ours the same programs get about the same cores.
  const double most_over_least = threads.size() == 1 ? 1.5 : 2.5;
  return most <= most_over_least * least;
}

/// Adds the cells that may reach the best's rate without other programs, also those that overlap with it.
void add_unsettled(Choice& choice, const std::vector<const Cell*>& cells) {
  const Estimate& best = choice.best->images_per_s;
  const double reached = has_interval(best) ? best.low : (1 - kTie) * best.median;
  for (const Cell* cell : cells)
    if (cell != choice.best && cell->disturbance != Disturbance::none &&
        possible_rate(*cell, cells) >= reached)
      choice.unsettled.push_back(cell);
  std::ranges::stable_sort(choice.unsettled, std::ranges::greater{},
                           [&](const Cell* cell) { return possible_rate(*cell, cells); });
}

/// How many times as fast a disturbed cell may be without the programs beside it: with k of them on a core a
/// worker keeps at least 1 / (1 + k) of it; and it had at least the cores that they left, and the time in
/// which it did not stand still.
double most_speedup(const Cell& cell) {
  constexpr double kLeastLeft = 0.05;  // of a core: the readings are no finer
  double factor = 1 + std::max(1, cell.competitors);
  for (const measure::Record* record : cell.records) {
    const double used = std::min(cell.workers * cell.threads_per_worker, record->environment.cores);
    const double left = record->environment.cores - record->window.others_cores.value_or(0);
    factor = std::max(factor, used / std::max(kLeastLeft, left));
    const double moved_s = record->window.wall_s - record->window.paused_s.value_or(0);
    factor = std::max(factor, record->window.wall_s / std::max(kLeastLeft * record->window.wall_s, moved_s));
  }
  return factor;
}

}  // namespace

bool Choice::shows_slower(const Cell& cell) const {
  const auto holds = [&](const std::vector<const Cell*>& some) {
    return std::ranges::find(some, &cell) != some.end();
  };
  return &cell != best && !holds(overlap) && !holds(unsettled);
}

double possible_rate(const Cell& cell, const std::vector<const Cell*>& cells) {
  const double measured = std::max(cell.images_per_s.high, cell.images_per_s.median);
  if (cell.disturbance == Disturbance::none) return measured;
  double factor = most_speedup(cell);
  if (cell.disturbance == Disturbance::maybe)
    for (const Cell* other : cells) factor = std::max(factor, most_speedup(*other));
  return measured * factor;
}

Choice fastest(const std::vector<const Cell*>& cells) {
  Choice choice;
  if (cells.empty()) return choice;
  auto sorted = cells;
  sort_by_speed(sorted);
  choice.best = sorted.front();
  const Estimate& best = choice.best->images_per_s;
  bool all_within = lies_within(best, best);
  for (const Cell* cell : sorted) {
    if (cell == choice.best || !overlaps(best, cell->images_per_s)) continue;
    choice.overlap.push_back(cell);
    all_within = all_within && lies_within(best, cell->images_per_s);
  }
  choice.constant_load = has_constant_load(sorted);
  if (!choice.constant_load) add_unsettled(choice, sorted);
  choice.standing = choice.overlap.empty() ? Standing::decided
                    : all_within           ? Standing::tie
                                           : Standing::not_decided;
  return choice;
}

OperatingPoint operating_point(const std::vector<const Cell*>& cells) {
  const bool any_timed =
      std::ranges::any_of(cells, [](const Cell* cell) { return cell->is_measured() && cell->is_timed(); });
  OperatingPoint point;
  for (const Cell* cell : cells) {
    if (!cell->is_measured() || (any_timed && !cell->is_timed())) continue;
    if (auto why = reason_against(*cell); !why.empty())
      point.left_out.push_back({cell, std::move(why)});
    else
      point.eligible.push_back(cell);
  }
  sort_by_speed(point.eligible);
  point.choice = fastest(point.eligible);
  return point;
}

std::optional<BestCell> best_cell(std::span<const measure::Record> records) {
  const auto cells = make_cells(records);
  std::optional<BestCell> found;
  for (const CellGroup& subject : by_subject(cells)) {
    const Cell* const best = operating_point(subject.cells).best();
    if (best != nullptr && best->is_timed() && (!found || best->images_per_s.median > found->images_per_s))
      found = {best->name(), best->images_per_s.median};
  }
  return found;
}

std::vector<const Cell*> other_batches(const OperatingPoint& point) {
  std::vector<const Cell*> cells;
  if (point.best() == nullptr) return cells;
  const Setup wanted = apart_from_batch(*point.best());
  for (const Cell* cell : point.eligible)
    if (apart_from_batch(*cell) == wanted) cells.push_back(cell);
  // Of the measured cells with the same batch the fastest comes first and is kept.
  std::ranges::stable_sort(cells, {}, &Cell::local_batch);
  const auto same = std::ranges::unique(cells, {}, &Cell::local_batch);
  cells.erase(same.begin(), same.end());
  return cells;
}

std::vector<const Cell*> other_workers(const OperatingPoint& point) {
  std::map<int, const Cell*> by_workers;
  for (const Cell* cell : point.eligible) by_workers.try_emplace(cell->workers, cell);  // fastest first
  std::vector<const Cell*> cells;
  for (const auto& [workers, cell] : by_workers) cells.push_back(cell);
  return cells;
}

}  // namespace paceline::analysis
