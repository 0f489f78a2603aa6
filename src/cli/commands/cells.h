#pragma once

/// Runs a list of cells for sweep, scale, converge and study: shows the progress, and writes records and a
/// report.

#include <functional>
#include <vector>

#include "cli/options/options.h"
#include "cluster/interrupt.h"
#include "cluster/session.h"
#include "comm/emulate.h"
#include "study/study.h"
#include "train/given/backend.h"
#include "train/given/options.h"

namespace paceline::cli {

// Runs the cells of a study in several processes: the first one leads, the others follow. A process without
// work sleeps until the next order.

/// The backend with which a cell of `options` is run in this process, or would be.
[[nodiscard]] train::Backend backend_for(const Settings& settings, const train::Options& options);

/// For the first process: the callbacks with which it leads. `interrupt` hears of a signal to another
/// process.
[[nodiscard]] study::Runner::Together lead(const Settings& settings,
                                           const std::vector<study::PlannedCell>& cells,
                                           cluster::Interrupt& interrupt);
/// Tells the others that there are no more cells.
void dismiss(cluster::Session& session, cluster::Interrupt& interrupt);

/// For the others: runs the cells that the first process orders, until there are no more. Returns the exit
/// code.
int follow(const Settings& settings, const std::vector<study::PlannedCell>& cells);

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
