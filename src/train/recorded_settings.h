#pragma once

/// The options of a training as records keep them, and in what two runs differ.

#include <map>
#include <string>
#include <vector>

#include "measure/record.h"
#include "train/options.h"

namespace paceline::train {

/// The options as the record keeps them: command-line names and texts, only what can change a figure.
[[nodiscard]] std::map<std::string, std::string> settings(const Options& options);

/// All settings in which two runs differ, by name; `update` is left 0. Those that only some choices read are
/// absent elsewhere, so that one which either side lacks differs too.
[[nodiscard]] std::vector<measure::ChangeRecord> differences(const std::map<std::string, std::string>& then,
                                                             const std::map<std::string, std::string>& now);

}  // namespace paceline::train
