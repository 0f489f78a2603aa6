#pragma once

/// Writes the findings of `paceline check` as text, JSON and SARIF.

#include <string>
#include <vector>

#include "check/finding.h"

namespace paceline::report {

/// A line per finding, then what was not checked, grouped by what is missing, then the counts.
[[nodiscard]] std::vector<std::string> check_lines(const check::Result& result);

/// {"findings": [{"rule", "severity", "rows": [name], "printed", "corrected": {"value", "low", "high"},
/// "sentence", "file", "line"}], "not_checked": [{"rule", "missing"}]}. `printed` is a text with its original
/// digits; it and `corrected` are null if no single figure is meant.
[[nodiscard]] std::string check_json(const check::Result& result);

/// SARIF 2.1.0: one run, the rules with findings, a result for each finding.
[[nodiscard]] std::string check_sarif(const check::Result& result);

}  // namespace paceline::report
