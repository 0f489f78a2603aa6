#pragma once

/// --plan: shows what a command would do. Writes nothing.

#include <filesystem>
#include <string>
#include <vector>

#include "cli/options/options.h"
#include "comm/emulate.h"
#include "study/study.h"
#include "train/given/backend.h"

namespace paceline::cli {

/// An option's value and its origin.
struct PlannedSetting {
  std::string name, value;
  std::string origin;  ///< "typed", "recipes/mnist.toml:7", "/etc/paceline/site.toml:3", "default"
};

/// Every option of the command that has a value, those set by the user first. A pure function.
[[nodiscard]] std::vector<PlannedSetting> planned_settings(const Settings& settings);

/// The backend for a plan: for this process, as if launch or sbatch had started it.
[[nodiscard]] train::Backend plan_backend(const Settings& settings, const comm::Emulation& emulation);

/// Prints the plan of `cells` (for train: the one training): settings, model, data, batches, steps, memory,
/// files, disk, and the time (plan_time.h); with --json as one object.
/// `directory`: where the output would go. Returns 0.
///
/// Errors   Error(usage), Error(data), Error(device) with which the command itself would end before its first
///          step; also when no cell's plan fits into memory
/// Cost     opens the data; plans a model for each different cell
int show_plan(const Settings& settings, const std::vector<study::PlannedCell>& cells,
              const train::Backend& backend, const std::filesystem::path& directory);

/// The plan of the command after `launch` or `sbatch`, with `processes` of one worker each on `nodes` hosts.
int show_child_plan(const Settings& settings, int processes, int nodes);

}  // namespace paceline::cli
