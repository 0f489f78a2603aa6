#pragma once

/// Words for the remedies of a loss of parallel efficiency, and the commands that test a remedy.

#include <string>

#include "analysis/steps/remedies.h"

namespace paceline::report {

/// "buckets of 2.1 MB", "2 loader threads a worker".
[[nodiscard]] std::string name_of(const analysis::Remedy& remedy, const analysis::Cell& cell);
/// "saves 4.1 %" (of the time of a step); "saves at most 4.1 %" if only a bound is known.
[[nodiscard]] std::string said_of_gain(const analysis::Remedy& remedy);
/// One command that measures the cell (configuration) of `loss` again with the remedy. If the remedy also
/// changes the run of one worker that its efficiency is compared with, the command measures both. Where a
/// host name is not known, the command has the placeholder HOST1, HOST2, ...
[[nodiscard]] std::string command_of(const analysis::Remedy& remedy, const analysis::EfficiencyLoss& loss);

}  // namespace paceline::report
