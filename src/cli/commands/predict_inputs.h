#pragma once

/// What `predict` makes of its files: a StepModel of records or of a table, and a cluster.

#include <optional>
#include <span>
#include <vector>

#include "analysis/predict/forecast.h"
#include "cli/commands/commands.h"

namespace paceline::cli {

/// From rows with times of steps, or rates: as far as a table goes.
///
/// Errors   Error(data): file and line, and which column is missing or holds two different texts
[[nodiscard]] analysis::StepModel step_model_of(const table::Table& table);

/// The link that the records emulated.
[[nodiscard]] std::optional<analysis::AddedLink> emulated_link(std::span<const measure::Record> records);

struct ChosenCluster {
  std::optional<analysis::Cluster> cluster;  ///< none: as measured
  bool is_other_hardware = false;
};
/// By --cluster and --link.
[[nodiscard]] ChosenCluster chosen_cluster(const Settings::Predict& options, const analysis::StepModel& model,
                                           const std::optional<analysis::AddedLink>& emulated);

}  // namespace paceline::cli
