#pragma once

/// --plan: what a command would do, found out without doing it. Nothing is written.

#include <filesystem>
#include <string>
#include <vector>

#include "cli/settings.h"
#include "comm/emulate.h"
#include "study/study.h"
#include "train/backend.h"

namespace paceline::cli {

/// An option as it stands, and why.
struct PlannedSetting {
  std::string name, value;
  std::string origin;  ///< "typed", "recipes/mnist.toml:7", "/etc/paceline/site.toml:3", "default"
};

/// Every option of the command that has a value, those that somebody set first. Pure function.
[[nodiscard]] std::vector<PlannedSetting> planned_settings(const Settings& settings);

/// The backend of a plan: of this process, as one of those that launch or sbatch would start.
[[nodiscard]] train::Backend plan_backend(const Settings& settings, const comm::Emulation& emulation);

/// Prints the plan of `cells` (of train: the one training): settings, model, data, batches, steps, memory,
/// files, disk, and the time as an older record knows it (plan_time.h); with --json as one object.
/// `directory`: where the output would go. Returns 0.
///
/// Errors   Error(usage), Error(data), Error(device) that the command itself would end with before its first
///          step: a plan that does not fit into memory is one, where every cell's does not
/// Cost     opens the data; plans a model for each different cell
int show_plan(const Settings& settings, const std::vector<study::PlannedCell>& cells,
              const train::Backend& backend, const std::filesystem::path& directory);

/// The plan of the command behind `launch` or `sbatch`, with `processes` of one worker each on `nodes` hosts.
int show_child_plan(const Settings& settings, int processes, int nodes);

}  // namespace paceline::cli
