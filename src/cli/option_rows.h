#pragma once

/// What the tables of options are written with; included by the tables only. A row is read as: name, how its
/// value is written, heading, help, commands, reader, present value, and where there are any its rival,
/// whether recipes take it, and what it needs.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cli/options.h"
#include "cli/values.h"

namespace paceline::cli {

// The table in its parts, one a file; options() joins them in this order.
[[nodiscard]] std::span<const Option> training_rows();  ///< what, by whom, how long
[[nodiscard]] std::span<const Option> rule_rows();      ///< optimizer, learning rate, schedule
[[nodiscard]] std::span<const Option> launch_rows();    ///< collectives, processes, hosts
[[nodiscard]] std::span<const Option> study_rows();     ///< what is varied, and what is left behind

using measure::Setting;

inline constexpr std::optional<Setting> kNoRival;

// The first rows of measure/setting.h that the second to the fourth file read; the first reads those before.
inline constexpr std::size_t kRulePart = Setting("optimizer").row();
inline constexpr std::size_t kLaunchPart = Setting("sizes").row();
inline constexpr std::size_t kStudyPart = Setting("batches").row();

/// Whether `rows` hold a reader of each setting from row `begin` up to `end`.
consteval bool reads_all(std::span<const Option> rows, std::size_t begin, std::size_t end) {
  for (; begin < end; ++begin)
    if (std::none_of(rows.begin(), rows.end(),
                     [&](const Option& option) { return option.setting == Setting::at(begin); }))
      return false;
  return true;
}

using S = Settings;
using Text = std::string_view;

inline constexpr auto kLargestBatch = std::int64_t{1} << 31;
inline constexpr int kManyWorkers = 4096;
inline constexpr unsigned kTimed = kSweep | kScale | kStudy;  ///< they time cells
/// cells of different sizes, that are kept and gone on with
inline constexpr unsigned kStudies = kRuns & ~(kTrain | kSearch);
inline constexpr unsigned kTrainings = kTrain | kConverge;  ///< whole trainings: accuracy counts

inline int small(Text text, std::int64_t least, std::int64_t most = std::numeric_limits<int>::max()) {
  return static_cast<int>(whole_number(text, least, most));
}
inline std::string yes_no(bool value) { return value ? "true" : "false"; }
inline std::string whole(std::int64_t value) { return std::to_string(value); }
/// 0 means "not set" for most counts: shown as no default.
inline std::string whole_or_none(std::int64_t value) { return value == 0 ? "" : whole(value); }
inline std::string decimal_or_none(double value) { return value == 0 ? "" : as_text(value); }

}  // namespace paceline::cli
