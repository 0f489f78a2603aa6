#pragma once

/// Removes from records what should not be shown to others: home directories, and paths of one machine. The
/// records themselves keep them.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "measure/record.h"

namespace paceline::report {

/// `text` with home directories replaced by "~": `home` (the current user's), /root, and directories in /home
/// and /Users. A shell still understands the paths.
[[nodiscard]] std::string without_homes(std::string_view text, std::string_view home);

/// The same for sentences, where every other absolute path is also reduced to its last part,
/// "…/kernels-1.txt". Paths that every Linux has (/proc, /sys, /dev, /etc, /usr) stay.
[[nodiscard]] std::string without_paths(std::string_view text, std::string_view home);

/// Copies for a report: no paths in sentences, no home directories in commands. Equal settings stay equal,
/// different ones different.
///
/// Cost     a copy of all records
[[nodiscard]] std::vector<measure::Record> shareable(std::span<const measure::Record> records,
                                                     std::string_view home);

/// $HOME; "" if it is not set.
[[nodiscard]] std::string home_here();

}  // namespace paceline::report
