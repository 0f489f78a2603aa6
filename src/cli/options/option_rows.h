#pragma once

/// Helpers for the tables of options, and included only by them. A row is: name, how its value is written,
/// heading, help, commands, reader, current value, and if any: its rival, whether recipes accept it, and what
/// it needs.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/text.h"
#include "cli/options/options.h"

namespace paceline::cli {

// The parts of the table, one per file; options() joins them in this order.
[[nodiscard]] std::span<const Option> training_rows();  ///< what, by whom, how long
[[nodiscard]] std::span<const Option> rule_rows();      ///< optimizer, learning rate, schedule
[[nodiscard]] std::span<const Option> launch_rows();    ///< collectives, processes, hosts
[[nodiscard]] std::span<const Option> study_rows();     ///< what is varied, and what is written

using base::as_text;
using base::Bounds;
using base::decimal;
using base::one_of;
using base::parts;
using base::truth;
using base::whole_number;
using base::whole_number_in;
using base::whole_numbers;
using measure::Setting;

inline constexpr std::optional<Setting> kNoRival;

// The first rows of measure/setting.h that belong to the second to fourth file; the first file has those
// before.
inline constexpr std::size_t kRulePart = Setting("optimizer").row();
inline constexpr std::size_t kLaunchPart = Setting("sizes").row();
inline constexpr std::size_t kStudyPart = Setting("batches").row();

/// Whether `rows` have a reader for each setting from row `begin` up to `end`.
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
inline constexpr unsigned kTimed = kSweep | kScale | kStudy;  ///< commands that time cells
/// commands with cells of different sizes, which are kept and continued
inline constexpr unsigned kStudies = kRuns & ~(kTrain | kSearch);
inline constexpr unsigned kTrainings = kTrain | kConverge;  ///< commands with whole trainings and accuracies

inline int small(Text text, std::int64_t least, std::int64_t most = std::numeric_limits<int>::max()) {
  return static_cast<int>(whole_number(text, least, most));
}
inline std::string yes_no(bool value) { return value ? "true" : "false"; }
inline std::string whole(std::int64_t value) { return std::to_string(value); }
/// 0 means "not set" for most counts and is shown as no default.
inline std::string whole_or_none(std::int64_t value) { return value == 0 ? "" : whole(value); }
inline std::string decimal_or_none(double value) { return value == 0 ? "" : as_text(value); }

}  // namespace paceline::cli
