#pragma once

/// Two sets of records, A (before) and B (after), cell by cell: what differs between them, what became faster
/// or slower, and what cannot be compared.
///
/// Unlike a ratio inside one report, this one is about the settings that differ: another bucket size, other
/// threads, another version or machine is what is compared, and is named. Refused is what makes the figures
/// of different things: another model, other data, another way to make images; and what one side did not
/// measure: an emulated link, a build that is not optimised, a cell that other programs disturbed.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/cell.h"
#include "analysis/change.h"
#include "analysis/converge.h"
#include "measure/record.h"

namespace paceline::analysis {

/// A test accuracy of a training that both sides have.
struct AccuracyChange {
  Variant a, b;
  std::vector<std::string> refusals;     ///< sentences; then there is no difference
  std::optional<Difference> difference;  ///< b - a
  Change change = Change::no_change;     ///< by the difference's interval against 0: no noise threshold
};

/// A cell that both sides have measured.
struct Pair {
  const Cell* a = nullptr;
  const Cell* b = nullptr;
  std::string name;                   ///< "scale weak b 32, N 2"
  std::vector<std::string> refusals;  ///< sentences; then there is no change, and the ratio means nothing
  Estimate ratio;                     ///< images/s, B / A
  bool is_of_one_run = false;         ///< on each side
  Change change = Change::no_change;
  std::optional<AccuracyChange> accuracy;
  [[nodiscard]] bool is_compared() const { return refusals.empty(); }
};

/// An entry of the set-up in which paired cells differ.
struct SetupDifference {
  std::string name;       ///< "version"; of a setting "--bucket-mb"
  std::string a, b;       ///< "not given" where it is absent
  std::size_t pairs = 0;  ///< in which they differ so
};

/// A cell that one side alone has measured.
struct Unpaired {
  const Cell* cell = nullptr;
  bool is_of_a = false;
  std::string name;
  std::string why;  ///< "not in B", "in B skipped: ..."
};

struct RunComparison {
  RunComparison() = default;
  RunComparison(RunComparison&&) = default;
  RunComparison(const RunComparison&) = delete;
  RunComparison& operator=(const RunComparison&) = delete;

  std::vector<Cell> a, b;   ///< all cells, into which the others point
  std::vector<Pair> pairs;  ///< compared ones first, the smallest ratio first
  std::vector<Unpaired> unpaired;
  std::vector<SetupDifference> differences;  ///< of all pairs, in the order of the set-up

  [[nodiscard]] const Pair* pair_of(const Cell* cell) const;  ///< of either side; null where it has none
  [[nodiscard]] std::size_t number_of(Change change) const;   ///< of compared pairs, by their times
  [[nodiscard]] std::size_t accuracies_of(Change change) const;
};

/// Cells are paired by what they are part of, workers and batches; of several such on one side, those pair
/// up whose set-ups differ least. Two single trainings are a pair whatever their sizes.
///
/// Lifetime  the result looks into both sets of records
/// Cost      linear in steps; the pairing quadratic in the cells of one size
[[nodiscard]] RunComparison compare_runs(std::span<const measure::Record> a,
                                         std::span<const measure::Record> b, double noise = kNoise);

}  // namespace paceline::analysis
