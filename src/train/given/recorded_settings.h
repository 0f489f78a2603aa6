#pragma once

/// Converts the options of a training to the form of records, and finds the differences between two runs.

#include <map>
#include <string>
#include <vector>

#include "measure/record.h"
#include "train/given/options.h"

namespace paceline::train {

/// The options that can change a figure, as the record has them: command-line names and texts.
[[nodiscard]] std::map<std::string, std::string> settings(const Options& options);

/// All settings in which two runs differ, by name; `update` stays 0. A setting that only some choices use is
/// absent otherwise; if one side lacks it, that is a difference too.
[[nodiscard]] std::vector<measure::ChangeRecord> differences(const std::map<std::string, std::string>& then,
                                                             const std::map<std::string, std::string>& now);

}  // namespace paceline::train
