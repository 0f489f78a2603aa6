#include "analysis/steps/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "analysis/compare/cell_labels.h"
#include "analysis/compare/setup_groups.h"
#include "base/error.h"
#include "measure/setting.h"

namespace paceline::analysis {
namespace {

/// The circumstances (such as the version) in which most batches were measured; if several are equal, the
/// last.
Circumstances most_measured_in(const std::vector<const Cell*>& cells) {
  std::vector<std::pair<Circumstances, std::set<std::int64_t>>> found;
  for (const Cell* cell : cells) {
    if (!cell->is_measured()) continue;
    const auto here = circumstances(cell->record());
    auto same = std::ranges::find_if(found, [&](const auto& one) { return one.first == here; });
    if (same == found.end()) same = found.insert(found.end(), {here, {}});
    same->second.insert(cell->local_batch);
  }
  const Circumstances* most = nullptr;
  std::size_t batches = 0;
  for (const auto& [here, measured] : found) {
    if (measured.size() < batches) continue;
    most = &here;
    batches = measured.size();
  }
  return most == nullptr ? Circumstances{} : *most;
}

/// Keeps one of several points at one batch on the curve: that measured in the circumstances `chosen`.
void leave_others_off(std::vector<SweepPoint>& points, const Circumstances& chosen) {
  for (SweepPoint& point : points) {
    if (!point.on_curve || circumstances(point.cell->record()) == chosen) continue;
    const auto other = std::ranges::find_if(points, [&](const SweepPoint& one) {
      return one.on_curve && one.cell->local_batch == point.cell->local_batch &&
             circumstances(one.cell->record()) == chosen;
    });
    if (other == points.end()) continue;
    const auto texts = different_circumstances({point.cell, other->cell});
    point.on_curve = false;
    point.verdict.refusals.push_back(fmt::format(
        "measured with {}; the curve shows what was measured with {}, which covers at least as many batches",
        texts[0], texts[1]));
  }
}

/// The part of a set-up that must agree if cells of other kinds are used as one point of a sweep.
Setup without_sizes(const Cell& cell) {
  return some_of(cell.setup, [](const SetupEntry& entry) {
    return entry.kind != SetupKind::part && entry.kind != SetupKind::size &&
           (entry.kind != SetupKind::setting || measure::role_of(entry.name) != measure::SettingRole::size);
  });
}

/// The cells of one model that form sweeps, by number of workers.
std::map<int, std::vector<const Cell*>> cells_to_sweep(const std::vector<const Cell*>& cells) {
  std::map<int, std::vector<const Cell*>> own;
  for (const Cell* cell : cells)
    if (cell->kind == "sweep") own[cell->workers].push_back(cell);
  // If the sweep has its own cell for a batch, perhaps from an earlier run, no other is needed.
  for (const Cell* cell : cells) {
    if (cell->kind == "sweep" || !cell->is_in_sweep) continue;
    auto& members = own[cell->workers];
    if (std::ranges::none_of(members, [&](const Cell* other) {
          return other->local_batch == cell->local_batch && without_sizes(*other) == without_sizes(*cell);
        }))
      members.push_back(cell);
  }
  if (!own.empty()) return own;
  std::set<std::int64_t> batches;
  std::vector<const Cell*> distinct;  // the same batch may stand in the weak and in the strong cells
  for (const bool measured : {true, false})
    for (const Cell* cell : cells) {
      if (cell->kind == "converge" || cell->workers != 1 || cell->is_measured() != measured) continue;
      batches.insert(cell->local_batch);
      const bool is_there = std::ranges::any_of(distinct, [&](const Cell* other) {
        return other->local_batch == cell->local_batch &&
               (!measured || without_sizes(*other) == without_sizes(*cell));
      });
      if (!is_there) distinct.push_back(cell);
    }
  if (batches.size() > 1) own[1] = distinct;
  return own;
}

Limit limit_of(const Cell& cell) {
  const measure::Record& record = cell.record();
  const auto samples = record.data.train_samples;
  const auto& memory = record.memory;
  // A batch larger than the data set contains the whole set, whatever was timed.
  if (samples > 0 && cell.global_batch > samples) return Limit::data;
  if (cell.is_measured()) return Limit::none;
  if (memory.plan_bytes > 0 && memory.available_bytes > 0 && memory.exceeds_what_there_is())
    return Limit::memory;
  return cell.status == "failed" ? Limit::failed : Limit::not_timed;
}

SweepPoint make_point(const Cell& cell) {
  SweepPoint point;
  point.cell = &cell;
  point.limit = limit_of(cell);
  point.plan_bytes = cell.record().memory.plan_bytes;
  if (const auto& device = cell.record().memory.device) {  // the batch fills the device's memory
    point.plan_bytes = device->plan_bytes;
    return point;
  }
  for (const measure::Record* record : cell.records) {
    const auto& memory = record->memory;
    if (!memory.peak_bytes || memory.plan_bytes <= 0) continue;
    // Plan and peak are taken from the same run: both contain the process itself, which grows during a study.
    const double share = static_cast<double>(*memory.peak_bytes) / static_cast<double>(memory.plan_bytes);
    if (point.peak_over_plan && std::abs(share - 1) <= std::abs(*point.peak_over_plan - 1)) continue;
    point.plan_bytes = memory.plan_bytes;
    point.peak_bytes = memory.peak_bytes;
    point.peak_over_plan = share;
  }
  return point;
}

/// The knee is certain if every smaller batch is certainly slower than the tolerance allows, and the knee is
/// certainly within the tolerance of every larger batch. "Certainly" means by the interval of the ratio;
/// without an interval nothing is certain.
void find_rivals(Sweep& sweep, const std::vector<std::size_t>& places) {
  const auto rate = [&](std::size_t i) { return sweep.points[i].cell->images_per_s; };
  for (const std::size_t i : places) {
    const Estimate share =
        i < *sweep.knee ? ratio(rate(i), rate(*sweep.best)) : ratio(rate(*sweep.knee), rate(i));
    const bool is_rival =
        i == *sweep.knee || !has_interval(share) ||
        (i < *sweep.knee ? share.high >= 1 - kKneeTolerance : share.low < 1 - kKneeTolerance);
    if (is_rival) sweep.undecided.push_back(i);
  }
  if (sweep.undecided.size() == 1) sweep.undecided.clear();
}

void find_knee(Sweep& sweep) {
  std::vector<double> rates;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    if (!sweep.points[i].on_curve) continue;
    rates.push_back(sweep.points[i].cell->images_per_s.median);
    places.push_back(i);
  }
  if (rates.empty()) return;
  sweep.best = places[static_cast<std::size_t>(std::ranges::max_element(rates) - rates.begin())];
  sweep.knee = places[knee(rates)];
  find_rivals(sweep, places);
}

/// Whether the next batch would be larger than the data set. With --shard a worker's shards stay a power of
/// two.
bool is_at_the_end_of_data(const measure::Record& record) {
  if (record.data.train_samples <= 0) return false;
  const auto* shard = measure::find_text(record.settings, "shard");
  const bool doubles = shard != nullptr && *shard != "0" && !shard->empty();
  const std::int64_t next = doubles ? 2 * record.local_batch : record.local_batch + 1;
  return next * record.workers > record.data.train_samples;
}

void find_limits(Sweep& sweep) {
  bool memory_ends = false;
  for (const SweepPoint& point : sweep.points) {
    memory_ends = memory_ends || point.limit == Limit::memory;
    const bool was_measured = point.limit == Limit::none;
    const bool is_planned =
        point.limit == Limit::not_timed && point.cell->status == "skipped" && point.plan_bytes > 0;
    if (!was_measured && !is_planned) continue;
    sweep.largest_that_fits = point.cell->local_batch;
    sweep.largest_met = is_at_the_end_of_data(point.cell->record()) ? Limit::data
                        : was_measured                              ? Limit::none
                                                                    : Limit::memory;
  }
  if (sweep.largest_met == Limit::none && memory_ends) sweep.largest_met = Limit::memory;
}

/// Requires   `members` is not empty
Sweep make_sweep(std::vector<const Cell*> members) {
  std::ranges::stable_sort(members, {}, &Cell::local_batch);
  Sweep result;
  result.workers = members.front()->workers;
  const auto chosen = most_measured_in(members);
  const auto first = std::ranges::find_if(members, [&](const Cell* cell) {
    return limit_of(*cell) == Limit::none && circumstances(cell->record()) == chosen;
  });
  for (const Cell* cell : members) {
    SweepPoint point = make_point(*cell);
    if (point.limit == Limit::none) {
      const Cell* const baseline = first == members.end() ? cell : *first;
      point.verdict = compare(baseline->record(), cell->record(), Topic::sweep);
      point.on_curve = point.verdict.comparable();
    }
    result.points.push_back(std::move(point));
  }
  leave_others_off(result.points, chosen);
  result.on_curve = static_cast<int>(
      std::ranges::count_if(result.points, [](const SweepPoint& point) { return point.on_curve; }));
  find_knee(result);
  find_limits(result);
  return result;
}

}  // namespace

std::size_t knee(std::span<const double> images_per_s) {
  base::expects(!images_per_s.empty(), "a knee is of at least one point");
  const double best = *std::ranges::max_element(images_per_s);
  std::size_t at = 0;
  while (images_per_s[at] < (1 - kKneeTolerance) * best) ++at;
  return at;
}

std::vector<Sweep> sweeps(std::span<const Cell> cells) {
  std::vector<Sweep> all;
  for (const CellGroup& subject : by_subject(cells))
    for (const auto& [workers, members] : cells_to_sweep(subject.cells))
      for (const CellGroup& part : by_setup(members, Place::batch)) {
        all.push_back(make_sweep(part.cells));
        all.back().subject = subject.name;
        all.back().setup = part.name;
      }
  return all;
}

}  // namespace paceline::analysis
