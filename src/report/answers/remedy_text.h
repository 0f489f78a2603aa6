#pragma once

/// Puts remedies of a loss of efficiency into words, and makes commands that test them.

#include <string>

#include "analysis/remedies.h"

namespace paceline::report {

/// "buckets of 2.1 MB", "2 loader threads a worker".
[[nodiscard]] std::string name_of(const analysis::Remedy& remedy, const analysis::Cell& cell);
/// "saves 4.1 %", "saves at most 4.1 %".
[[nodiscard]] std::string said_of_gain(const analysis::Remedy& remedy);
/// The command that measures the cell of `loss` again with the remedy, and its baseline if that changes too.
/// Unknown host names are HOST1, HOST2.
[[nodiscard]] std::string command_of(const analysis::Remedy& remedy, const analysis::EfficiencyLoss& loss);

}  // namespace paceline::report
