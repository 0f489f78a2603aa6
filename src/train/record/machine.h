#pragma once

/// Describes the machine of a run for its record.

#include <string>
#include <vector>

#include "measure/record.h"
#include "train/given/backend.h"

namespace paceline::train {

/// As measure::environment(), with the cores that all processes of this host may use together. So all cells
/// of a session name the same machine, however many of its processes each uses.
[[nodiscard]] measure::Environment machine_of(const ProcessPlacement& place,
                                              std::vector<std::string> libraries = {});

}  // namespace paceline::train
