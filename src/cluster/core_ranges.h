#pragma once

#include <string>
#include <vector>

namespace paceline::cluster {

/// `cores` (ascending) as text, in the form of taskset and Slurm: "0-3,8".
[[nodiscard]] std::string core_ranges(const std::vector<int>& cores);

}  // namespace paceline::cluster
