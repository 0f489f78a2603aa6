#pragma once

#include <string>
#include <vector>

namespace paceline::cli {

/// "0-3,8": as taskset and Slurm write cores. `cores`: ascending.
[[nodiscard]] std::string core_ranges(const std::vector<int>& cores);

}  // namespace paceline::cli
