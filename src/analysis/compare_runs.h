#pragma once

/// Compares two sets of records, A (before) and B (after), cell by cell: what differs between them, what
/// became faster or slower, and what cannot be compared.
///
/// Unlike ratios inside one report, these are about settings that differ: another bucket size, threads,
/// version or machine is the subject, and is named. Refused are figures of different things (another model,
/// other data, another way to make images) and what one side did not measure properly: an emulated link, a
/// build without optimisation, a cell that other programs disturbed.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/compare/cell.h"
#include "analysis/compare/interval.h"
#include "analysis/trainings/converge.h"
#include "measure/record.h"

namespace paceline::analysis {

/// The test accuracies of a training that both sides have.
struct AccuracyChange {
  Variant a, b;
  std::vector<std::string> refusals;     ///< sentences; if any, there is no difference
  std::optional<Difference> difference;  ///< b - a
  Change change = Change::no_change;     ///< by the difference's interval, without a noise threshold
};

/// A cell that both sides have measured.
struct Pair {
  const Cell* a = nullptr;
  const Cell* b = nullptr;
  std::string name;                   ///< "scale weak b 32, N 2"
  std::vector<std::string> refusals;  ///< sentences; if any, `ratio` and `change` have no meaning
  Estimate ratio;                     ///< images/s, B / A
  bool is_of_one_run = false;         ///< on each side
  Change change = Change::no_change;
  std::optional<AccuracyChange> accuracy;
  [[nodiscard]] bool is_compared() const { return refusals.empty(); }
};

/// An entry of the set-up in which paired cells differ.
struct SetupDifference {
  std::string name;       ///< "version"; of a setting "--bucket-mb"
  std::string a, b;       ///< "not given" if it is absent
  std::size_t pairs = 0;  ///< number of pairs with this difference
};

/// A cell that only one side has measured.
struct Unpaired {
  const Cell* cell = nullptr;
  bool is_of_a = false;
  std::string why;  ///< "not in B", "in B skipped: ..."
};

struct RunComparison {
  RunComparison() = default;
  RunComparison(RunComparison&&) = default;
  RunComparison(const RunComparison&) = delete;
  RunComparison& operator=(const RunComparison&) = delete;

  std::vector<Cell> a, b;   ///< all cells, to which the others point
  std::vector<Pair> pairs;  ///< compared ones first, the smallest ratio first
  std::vector<Unpaired> unpaired;
  std::vector<SetupDifference> differences;  ///< of all pairs, in the order of the set-up

  [[nodiscard]] const Pair* pair_of(const Cell* cell) const;  ///< of either side; null if it has none
  [[nodiscard]] std::size_t number_of(Change change) const;   ///< of compared pairs, by their times
  [[nodiscard]] std::size_t accuracies_of(Change change) const;
};

/// Cells are paired by their part of the study, workers and batches; if one side has several such cells,
/// those with the most similar set-ups are paired. Two single trainings are a pair whatever their sizes.
///
/// Lifetime  the result refers to both sets of records
/// Cost      linear in steps; the pairing quadratic in the cells of one size
[[nodiscard]] RunComparison compare_runs(std::span<const measure::Record> a,
                                         std::span<const measure::Record> b, double noise = kNoise);

}  // namespace paceline::analysis
