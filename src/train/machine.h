#pragma once

/// The machine of a run, as its record has it.

#include <string>
#include <vector>

#include "measure/record.h"
#include "train/backend.h"

namespace paceline::train {

/// As measure::environment(), with the cores that all processes of this host may use together: cells of one
/// session are of one machine, however many of its processes each of them takes.
[[nodiscard]] measure::Environment machine_of(const ProcessPlacement& place,
                                              std::vector<std::string> libraries = {});

}  // namespace paceline::train
