#pragma once

/// The parts of the table of options that this folder has, one for each file, and what their rows use.

#include <span>
#include <string>
#include <string_view>

#include "base/text.h"
#include "cli/options/options.h"
#include "train/given/option_rows.h"

namespace paceline::cli {

using Row = train::OptionRow<Settings>;

[[nodiscard]] std::span<const Row> comm_rows();     ///< messages of `comm`
[[nodiscard]] std::span<const Row> launch_rows();   ///< processes, hosts, jobs
[[nodiscard]] std::span<const Row> cell_rows();     ///< which cells are timed
[[nodiscard]] std::span<const Row> predict_rows();  ///< what is predicted
[[nodiscard]] std::span<const Row> target_rows();   ///< trainings to an accuracy
[[nodiscard]] std::span<const Row> study_rows();    ///< what is compared, and what is written

/// What --emulate-compute means: `text` itself if it is phases (engine/ghost/phases.h); else those of the
/// record of this name: the means over its ranks, the spread of their own work, the median ready time of each
/// bucket.
///
/// Errors   Error(usage): the end of a sentence that begins with the option's name
[[nodiscard]] std::string emulated_phases(std::string_view text);

using base::decimal;
using base::lines_of;  // the values of a train::kList
using base::one_of;
using base::whole_number;
using base::whole_number_in;
using base::whole_numbers;
using measure::Setting;
using train::at;
using train::Field;
using train::kBetween;
using train::kCells;
using train::kLargestBatch;
using train::kList;
using train::kManyWorkers;
using train::kOnlyTyped;
using train::kProcesses;
using train::parsed_at;
using train::rival;

using S = Settings;
using Text = std::string_view;

/// commands with cells of different sizes, which are kept and continued
inline constexpr unsigned kStudies = kRuns & ~(kTrain | kSearch);

}  // namespace paceline::cli
