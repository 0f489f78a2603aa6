#pragma once

/// Parses units of bandwidth as people write them.

#include <optional>
#include <string_view>

namespace paceline::check {

/// Bytes/s of one unit: 1e9 for "GB/s", 2^30 for "GiB/s", 1.25e8 for "Gbit/s" (also Gb/s, Gbps); nothing for
/// other words.
[[nodiscard]] std::optional<double> bytes_per_s(std::string_view unit);

}  // namespace paceline::check
