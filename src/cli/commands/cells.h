#pragma once

/// What sweep, scale, converge and study share: run a list of cells, show it, leave records and a report.

#include <vector>

#include "cli/settings.h"
#include "study/study.h"

namespace paceline::cli {

/// Runs `cells` and leaves records/, report.html, report.md, report.json and csv/ in the output directory
/// (settings.train.out, or paceline-out/<command>). Returns the exit code.
int run_cells(const Settings& settings, const train::Backend& backend,
              const std::vector<study::PlannedCell>& cells);

}  // namespace paceline::cli
