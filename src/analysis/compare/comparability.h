#pragma once

/// Decides whether two records may be compared, and if not, why.
///
/// Two figures may form a ratio only if everything agrees except the subject of the comparison. A difference
/// is either refused (the ratio would be about something else: another model, other loader settings, another
/// machine) or remarked (it does not change the figure, but the reader must know).

#include <string>
#include <vector>

#include "analysis/compare/cell.h"
#include "measure/record.h"

namespace paceline::analysis {

/// The subject of a comparison, which decides what may differ.
enum class Topic {
  scaling,           ///< times; workers and batches differ
  same_cores,        ///< times at one global batch; workers and their threads differ
  sweep,             ///< times on the same workers; batches differ
  tables,            ///< times of two tables of one report: sweep, weak, strong; sizes and threads differ
  convergence,       ///< accuracies at equal epochs; batches and the rule of training differ
  time_to_accuracy,  ///< accuracies after equal seconds; epochs and threads may differ too
  two_runs,          ///< times of two runs: everything may differ but model and data
};

struct Verdict {
  std::vector<std::string> refusals;  ///< sentences; any of them forbids the ratio
  std::vector<std::string> remarks;   ///< sentences to show beside the ratio
  bool shares_cores = false;  ///< scaling: a worker has fewer threads than one of the baseline, so the number
                              ///< of cores did not grow with the workers
  [[nodiscard]] bool comparable() const { return refusals.empty(); }
};

/// Compares `baseline` with `other`. Weak with strong cells (except for tables and sweeps), and debug builds
/// with others, are refused for every topic.
[[nodiscard]] Verdict compare(const measure::Record& baseline, const measure::Record& other, Topic topic);
/// The same for two cells' records; a cell of both scalings (Cell::scaling) is compared in each.
[[nodiscard]] Verdict compare(const Cell& baseline, const Cell& other, Topic topic);

}  // namespace paceline::analysis
