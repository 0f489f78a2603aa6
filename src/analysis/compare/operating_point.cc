#include "analysis/compare/operating_point.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "analysis/compare/interval.h"

namespace paceline::analysis {
namespace {

/// Orders cells by speed, the fastest first; see fastest().
bool is_before(const Cell* a, const Cell* b) {
  const auto key = [](const Cell* cell) {
    const auto& rate = cell->images_per_s;
    return std::tuple(-rate.median, rate.high - rate.low, cell->global_batch);
  };
  return key(a) < key(b);
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
  if (cell.oversubscribed)
    return fmt::format("{} threads on {} cores", cell.workers * cell.threads_per_worker,
                       cores_used(cell.record()));
  if (cell.others == Others::busy) return "other programs were at work";
  return "";
}

/// The set-up without its kind and its batch.
Setup apart_from_batch(const Cell& cell) {
  Setup some;
  for (const SetupEntry& entry : cell.setup) {
    const bool is_of_batch = entry.kind == SetupKind::part ||
                             (entry.kind == SetupKind::size && entry.name != "workers") ||
                             entry.kind == SetupKind::circumstance;
    const bool is_batch = entry.kind == SetupKind::setting && entry.name.ends_with("batch");
    if (!is_of_batch && !is_batch) some.push_back(entry);
  }
  return some;
}

}  // namespace

Choice fastest(const std::vector<const Cell*>& cells) {
  Choice choice;
  if (cells.empty()) return choice;
  auto sorted = cells;
  std::stable_sort(sorted.begin(), sorted.end(), is_before);
  choice.best = sorted.front();
  const Estimate& best = choice.best->images_per_s;
  bool all_within = lies_within(best, best);
  for (const Cell* cell : sorted) {
    if (cell == choice.best || !overlaps(best, cell->images_per_s)) continue;
    choice.overlap.push_back(cell);
    all_within = all_within && lies_within(best, cell->images_per_s);
  }
  choice.standing = choice.overlap.empty() ? Standing::decided
                    : all_within           ? Standing::tie
                                           : Standing::not_decided;
  return choice;
}

OperatingPoint operating_point(const std::vector<const Cell*>& cells) {
  const bool any_timed = std::any_of(
      cells.begin(), cells.end(), [](const Cell* cell) { return cell->is_measured() && cell->is_timed(); });
  OperatingPoint point;
  for (const Cell* cell : cells) {
    if (!cell->is_measured() || (any_timed && !cell->is_timed())) continue;
    if (auto why = reason_against(*cell); !why.empty())
      point.left_out.push_back({cell, std::move(why)});
    else
      point.eligible.push_back(cell);
  }
  std::stable_sort(point.eligible.begin(), point.eligible.end(), is_before);
  point.choice = fastest(point.eligible);
  return point;
}

std::vector<const Cell*> other_batches(const OperatingPoint& point) {
  std::vector<const Cell*> cells;
  if (point.best() == nullptr) return cells;
  const Setup wanted = apart_from_batch(*point.best());
  for (const Cell* cell : point.eligible)
    if (apart_from_batch(*cell) == wanted) cells.push_back(cell);
  // Of the measured cells with the same batch the fastest comes first and is kept.
  std::stable_sort(cells.begin(), cells.end(),
                   [](const Cell* a, const Cell* b) { return a->local_batch < b->local_batch; });
  const auto is_same = [](const Cell* a, const Cell* b) { return a->local_batch == b->local_batch; };
  cells.erase(std::unique(cells.begin(), cells.end(), is_same), cells.end());
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
