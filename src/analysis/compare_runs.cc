#include "analysis/compare_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/compare/comparability.h"
#include "measure/disturbance.h"

namespace paceline::analysis {
namespace {

using measure::Record;

/// What the two cells of a pair have in common. Weak or strong is left out, because a cell of scaling runs in
/// the same way for both.
using Place = std::tuple<std::string, std::string, int, std::int64_t, std::int64_t>;
Place place_in_study(const Cell& cell) {
  return {cell.kind, cell.variant, cell.workers, cell.local_batch, cell.global_batch};
}

struct EntryDifference {
  SetupKind kind;
  std::string name, a, b;
};

/// In the order of the set-ups. Whether a cell was measured as weak or strong is no difference: see Place.
std::vector<EntryDifference> differences_of(const Cell& a, const Cell& b) {
  std::vector<EntryDifference> found;
  for (const EntryName& entry : names_of_entries({&a.setup, &b.setup})) {
    const auto was = text_of(a.setup, entry), is = text_of(b.setup, entry);
    if (entry.second != SetupKind::part && was != is) found.push_back({entry.second, entry.first, was, is});
  }
  return found;
}

/// How different two set-ups are. A different subject counts more than anything else.
std::size_t distance(const Cell& a, const Cell& b) {
  std::size_t sum = 0;
  for (const auto& entry : differences_of(a, b)) sum += entry.kind == SetupKind::subject ? 1000 : 1;
  return sum;
}

std::vector<const Cell*> measured_cells(const std::vector<Cell>& cells) {
  std::vector<const Cell*> found;
  for (const Cell& cell : cells)
    if (cell.is_measured()) found.push_back(&cell);
  return found;
}

bool is_single_training(const std::vector<const Cell*>& cells) {
  return cells.size() == 1 && cells.front()->kind == "train";
}

using CellPair = std::pair<const Cell*, const Cell*>;

/// Pairs the cells, the most similar first; each cell is in at most one pair.
std::vector<CellPair> matched(const std::vector<const Cell*>& a, const std::vector<const Cell*>& b) {
  if (is_single_training(a) && is_single_training(b)) return {{a.front(), b.front()}};
  std::map<Place, std::vector<const Cell*>> by_place;
  for (const Cell* cell : b) by_place[place_in_study(*cell)].push_back(cell);
  std::vector<std::tuple<std::size_t, const Cell*, const Cell*>> candidates;
  for (const Cell* cell : a)
    for (const Cell* other : by_place[place_in_study(*cell)])
      candidates.emplace_back(distance(*cell, *other), cell, other);
  std::ranges::stable_sort(candidates, {}, [](const auto& one) { return std::get<0>(one); });
  std::set<const Cell*> taken;
  std::vector<CellPair> pairs;
  for (const auto& [unlike, one, other] : candidates) {
    if (taken.contains(one) || taken.contains(other)) continue;
    taken.insert({one, other});
    pairs.emplace_back(one, other);
  }
  return pairs;
}

std::vector<std::vector<double>> repeats_of(const Cell& cell) {
  std::vector<std::vector<double>> repeats;
  for (const Record* record : cell.records) repeats.push_back(step_seconds(*record));
  return repeats;
}

/// Refuses the comparison of a cell that one side did not measure, with the reason.
void refuse_what_was_not_measured(const Cell& cell, const char* side, std::vector<std::string>& refusals) {
  if (cell.step_s.n == 1)
    refusals.push_back(fmt::format("{} timed a single step", side));
  else if (!has_interval(cell.step_s))
    refusals.push_back(
        fmt::format("{} timed {} steps of one run, too few for an interval", side, cell.step_s.n));
  // An idle process on a GPU, such as a notebook's, must not rule out comparisons.
  const auto disturbed = [](const Record* record) {
    return measure::disturbance_of_cores(*record) == measure::Disturbance::disturbed;
  };
  if (std::ranges::all_of(cell.records, disturbed))
    refusals.push_back(fmt::format("{} in {}", measure::text_about_disturbance(cell.record()), side));
}

std::vector<std::string> refusals_of(const Cell& a, const Cell& b) {
  auto refusals = compare(a.record(), b.record(), Topic::two_runs).refusals;
  if (a.emulated != b.emulated)
    refusals.push_back(fmt::format("A {}, B {}",
                                   a.emulated.empty() ? "emulated nothing" : "emulated " + a.emulated,
                                   b.emulated.empty() ? "emulated nothing" : "emulated " + b.emulated));
  refuse_what_was_not_measured(a, "A", refusals);
  refuse_what_was_not_measured(b, "B", refusals);
  return refusals;
}

/// The change of an accuracy. Even a clear difference between single seeds does not show how much seeds vary.
Change change_of_accuracy(const Difference& difference) {
  if (!difference.is_clear()) return Change::no_change;
  if (difference.one_seed || difference.of_survivors) return Change::within_noise;
  return difference.value > 0 ? Change::improved : Change::regressed;
}

std::optional<AccuracyChange> accuracy_of(const Cell& a, const Cell& b) {
  auto before = variant_of(a), after = variant_of(b);
  if (!before || !after) return std::nullopt;
  AccuracyChange result{.a = std::move(*before), .b = std::move(*after)};
  result.refusals = compare(*result.a.record, *result.b.record, Topic::convergence).refusals;
  if (!result.refusals.empty()) return result;
  result.difference = difference(result.a, result.b);
  result.change = change_of_accuracy(*result.difference);
  return result;
}

Pair compared(const Cell& a, const Cell& b, double noise) {
  Pair pair{.a = &a, .b = &b, .name = a.name()};
  if (place_in_study(a) != place_in_study(b)) pair.name += " against " + b.label;
  const auto steps_a = repeats_of(a), steps_b = repeats_of(b);
  pair.ratio = scaled(ratio_of_runs(steps_a, steps_b),
                      static_cast<double>(b.global_batch) / static_cast<double>(a.global_batch));
  pair.is_of_one_run = steps_a.size() == 1 && steps_b.size() == 1;
  pair.refusals = refusals_of(a, b);
  if (pair.is_compared()) pair.change = change_of(pair.ratio, pair.is_of_one_run, noise);
  pair.accuracy = accuracy_of(a, b);
  return pair;
}

/// `other`: the other side's cells; an unmeasured cell of the same place gives the reason.
std::string why_unpaired(const Cell& cell, const std::vector<Cell>& other, const char* side) {
  for (const Cell& there : other)
    if (!there.is_measured() && place_in_study(there) == place_in_study(cell))
      return fmt::format("in {} {}: {}", side, there.status, there.reason);
  return fmt::format("not in {}", side);
}

void add_unpaired(RunComparison& result, bool is_of_a) {
  for (const Cell* cell : measured_cells(is_of_a ? result.a : result.b))
    if (result.pair_of(cell) == nullptr)
      result.unpaired.push_back(
          {cell, is_of_a, why_unpaired(*cell, is_of_a ? result.b : result.a, is_of_a ? "B" : "A")});
}

void add_differences(RunComparison& result) {
  std::map<std::tuple<std::string, std::string, std::string>, std::size_t> places;
  for (const Pair& pair : result.pairs)
    for (const auto& entry : differences_of(*pair.a, *pair.b)) {
      const auto shown = [](const std::string& text) { return text.empty() ? "not given" : text; };
      SetupDifference row{.name = entry.kind == SetupKind::setting ? "--" + entry.name : entry.name,
                          .a = shown(entry.a),
                          .b = shown(entry.b)};
      const auto [place, is_new] = places.try_emplace({row.name, row.a, row.b}, result.differences.size());
      if (is_new) result.differences.push_back(std::move(row));
      ++result.differences[place->second].pairs;
    }
}

}  // namespace

const Pair* RunComparison::pair_of(const Cell* cell) const {
  const auto found =
      std::ranges::find_if(pairs, [&](const Pair& pair) { return pair.a == cell || pair.b == cell; });
  return found == pairs.end() ? nullptr : &*found;
}

std::size_t RunComparison::number_of(Change change) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      pairs, [&](const Pair& pair) { return pair.is_compared() && pair.change == change; }));
}

std::size_t RunComparison::accuracies_of(Change change) const {
  return static_cast<std::size_t>(std::ranges::count_if(pairs, [&](const Pair& pair) {
    return pair.accuracy && pair.accuracy->difference && pair.accuracy->change == change;
  }));
}

RunComparison compare_runs(std::span<const Record> a, std::span<const Record> b, double noise) {
  RunComparison result;
  result.a = make_cells(a);
  result.b = make_cells(b);
  for (const auto& [one, other] : matched(measured_cells(result.a), measured_cells(result.b)))
    result.pairs.push_back(compared(*one, *other, noise));
  std::ranges::stable_sort(
      result.pairs, {}, [](const Pair& pair) { return std::tuple(!pair.is_compared(), pair.ratio.median); });
  add_unpaired(result, true);
  add_unpaired(result, false);
  add_differences(result);
  return result;
}

}  // namespace paceline::analysis
