#pragma once

/// The cells of a study in several processes: the first one leads, the others follow.
/// A process without work waits for the next cell's word, without turning.

#include <string>
#include <vector>

#include "cli/session.h"
#include "cli/settings.h"
#include "study/study.h"
#include "train/run.h"

namespace paceline::cli {

/// What a cell of `options` is run with in this process, or would be.
[[nodiscard]] train::Backend backend_for(const Settings& settings, const train::Options& options);

/// For the first process: its side of the cells.
[[nodiscard]] study::Runner::Together lead(const Settings& settings,
                                           const std::vector<study::PlannedCell>& cells);
/// Tells the others that there are no more.
void dismiss(Session& session);

/// For the others: runs what the first process says until there is no more. Returns the exit code.
int follow(const Settings& settings, const std::vector<study::PlannedCell>& cells);

}  // namespace paceline::cli
