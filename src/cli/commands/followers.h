#pragma once

/// Runs the cells of a study in several processes: the first one leads, the others follow. A process without
/// work sleeps until the next order.

#include <string>
#include <vector>

#include "cli/options/settings.h"
#include "cluster/session.h"
#include "study/study.h"
#include "train/given/backend.h"
#include "train/given/options.h"

namespace paceline::cli {

/// The backend with which a cell of `options` is run in this process, or would be.
[[nodiscard]] train::Backend backend_for(const Settings& settings, const train::Options& options);

/// For the first process: the callbacks with which it leads.
[[nodiscard]] study::Runner::Together lead(const Settings& settings,
                                           const std::vector<study::PlannedCell>& cells);
/// Tells the others that there are no more cells.
void dismiss(cluster::Session& session);

/// For the others: runs the cells that the first process orders, until there are no more. Returns the exit
/// code.
int follow(const Settings& settings, const std::vector<study::PlannedCell>& cells);

}  // namespace paceline::cli
