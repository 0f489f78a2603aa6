#pragma once

/// The report of a comparison of two sets of records, A and B: headline, settings that differ, the ratio of
/// every pair and its word, accuracies, and cells that only one side has.

#include <string>
#include <vector>

#include "analysis/compare_runs.h"
#include "report/document.h"

namespace paceline::report {

struct CompareOptions {
  std::string a, b;     ///< their names in the report: the given paths
  std::string command;  ///< that makes this report; empty: unknown
  double noise = analysis::kNoise;
  /// Sentences about the input that are not in the records; shown at the top.
  std::vector<std::string> remarks = {};
};

/// Errors   none: what cannot be compared is listed with the reason
[[nodiscard]] Document build_comparison(const analysis::RunComparison& comparison,
                                        const CompareOptions& options);

/// "B is 12 % faster at the best cell of A, scale b 32, N 2 [8, 16]". The terminal shows it too.
[[nodiscard]] std::string headline(const analysis::RunComparison& comparison, double noise);

}  // namespace paceline::report
