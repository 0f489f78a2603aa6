#pragma once

/// Reports are shown to others: what of records names a person's home directory, or where things lie on one
/// machine, is left out of them. Records keep it.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "measure/record.h"

namespace paceline::report {

/// `text` with home directories as "~": `home` (the present user's), /root and what lies below /home and
/// /Users. A path stays one that a shell understands.
[[nodiscard]] std::string without_homes(std::string_view text, std::string_view home);

/// The same, and of every other absolute path the last part alone, "…/kernels-1.txt"; for sentences. Paths
/// that every Linux has (/proc, /sys, /dev, /etc, /usr) stay.
[[nodiscard]] std::string without_paths(std::string_view text, std::string_view home);

/// Copies whose texts are fit for a report: no paths in sentences, no homes in what was typed. Equal settings
/// stay equal, others different.
///
/// Cost     a copy of all records
[[nodiscard]] std::vector<measure::Record> shareable(std::span<const measure::Record> records,
                                                     std::string_view home);

/// $HOME; "" where there is none.
[[nodiscard]] std::string home_here();

}  // namespace paceline::report
