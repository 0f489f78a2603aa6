#pragma once

/// Runs a list of cells for sweep, scale, converge and study: shows the progress, and writes records and a
/// report.

#include <functional>
#include <vector>

#include "cli/options/settings.h"
#include "comm/emulate.h"
#include "study/study.h"
#include "train/given/backend.h"

namespace paceline::cli {

/// The backend for cells that run in this process alone.
[[nodiscard]] train::Backend backend_alone(const Settings& settings, const comm::Emulation& emulation = {});

/// How a list of cells is run: study::run_cells, or a search that chooses among them.
using RunList =
    std::function<std::vector<measure::Record>(const std::vector<study::PlannedCell>&, const study::Runner&)>;

/// Runs `cells` and writes records/, report.html, report.md, report.json and csv/ into the output directory
/// (settings.train.out, or paceline-out/<command>). Returns the exit code.
int run_cells(const Settings& settings, const train::Backend& backend,
              const std::vector<study::PlannedCell>& cells, const RunList& run = study::run_cells);

}  // namespace paceline::cli
