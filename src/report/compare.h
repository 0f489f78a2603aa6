#pragma once

/// Two sets of records, A and B, as a report: headline, settings that differ, the ratio of every pair with
/// its word, accuracies, and the cells that only one side has.

#include <string>
#include <vector>

#include "analysis/compare_runs.h"
#include "report/document.h"

namespace paceline::report {

struct CompareOptions {
  std::string a, b;     ///< what people call them: the paths that were given
  std::string command;  ///< that made this report; empty: not said
  double noise = analysis::kNoise;
  /// Sentences on what was given and does not stand in the records; shown on top.
  std::vector<std::string> remarks = {};
};

/// Errors   none: what cannot be compared is named with the reason
[[nodiscard]] Document build_comparison(const analysis::RunComparison& comparison,
                                        const CompareOptions& options);

/// "B is 12 % faster at the best cell of A, scale b 32, N 2 [8, 16]". Also said on the terminal.
[[nodiscard]] std::string headline(const analysis::RunComparison& comparison, double noise);

}  // namespace paceline::report
