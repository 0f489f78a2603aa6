#pragma once

/// What the tables of options are written with; included by the tables only. A row is read as: name, how its
/// value is written, heading, help, commands, reader, present value, and where there is one the rival.

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"
#include "cli/values.h"

namespace paceline::cli {

// The table in its parts, one a file; options() joins them in this order.
[[nodiscard]] std::vector<Option> training_rows();  ///< what, by whom, how long
[[nodiscard]] std::vector<Option> rule_rows();      ///< optimizer, learning rate, schedule
[[nodiscard]] std::vector<Option> launch_rows();    ///< collectives, processes, hosts
[[nodiscard]] std::vector<Option> study_rows();     ///< what is varied, and what is left behind

using S = Settings;
using Text = std::string_view;

inline constexpr auto kLargestBatch = std::int64_t{1} << 31;
inline constexpr int kManyWorkers = 4096;
inline constexpr unsigned kTimed = kSweep | kScale | kStudy;  ///< they time cells
inline constexpr unsigned kTrainings = kTrain | kConverge;    ///< whole trainings: accuracy counts

inline int small(Text text, std::int64_t least, std::int64_t most = std::numeric_limits<int>::max()) {
  return static_cast<int>(whole_number(text, least, most));
}
inline std::string yes_no(bool value) { return value ? "true" : "false"; }
inline std::string whole(std::int64_t value) { return std::to_string(value); }
/// 0 means "not set" for most counts: shown as no default.
inline std::string whole_or_none(std::int64_t value) { return value == 0 ? "" : whole(value); }
inline std::string decimal_or_none(double value) { return value == 0 ? "" : as_text(value); }

}  // namespace paceline::cli
