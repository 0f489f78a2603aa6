#pragma once

/// Whether two records may be compared, and if not, why not, in words.
///
/// Two figures may stand in one ratio only where everything agrees apart from what the comparison is about.
/// What differs is either refused (the ratio would be about something else: another model, other loader
/// settings, another machine) or remarked (it does not touch the figure, but the reader must know).

#include <string>
#include <vector>

#include "analysis/cell.h"
#include "measure/record.h"

namespace paceline::analysis {

/// What is compared, which decides what may differ.
enum class Topic {
  scaling,           ///< times; workers and batches differ
  same_cores,        ///< times at one global batch; workers and their threads differ
  sweep,             ///< times on the same workers; batches differ
  tables,            ///< times of two tables of one report: sweep, weak, strong; sizes and threads differ
  convergence,       ///< accuracies at equal epochs; batches and the rule of training differ
  time_to_accuracy,  ///< accuracies after equal seconds; these, epochs and threads differ
  two_runs,          ///< times of what was measured twice: everything differs but what is trained on what
};

struct Verdict {
  std::vector<std::string> refusals;  ///< sentences; any of them forbids the ratio
  std::vector<std::string> remarks;   ///< sentences to show beside it
  bool shares_cores = false;  ///< scaling: a worker has fewer threads than one of the baseline, so that more
                              ///< workers did not bring as many more cores
  [[nodiscard]] bool comparable() const { return refusals.empty(); }
};

/// `baseline` against `other`. Weak and strong cells (but as tables and in a sweep), and one with a debug
/// build and another without, are refused whatever the topic.
[[nodiscard]] Verdict compare(const measure::Record& baseline, const measure::Record& other, Topic topic);
/// The same of two cells' records; one that is of both scalings (Cell::scaling) is compared in each.
[[nodiscard]] Verdict compare(const Cell& baseline, const Cell& other, Topic topic);

}  // namespace paceline::analysis
