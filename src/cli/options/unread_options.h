#pragma once

/// Finds given options that have no effect beside the other given options.

#include <string>
#include <vector>

#include "cli/options/settings.h"
#include "measure/setting.h"

namespace paceline::cli {

struct UnreadOption {
  measure::Setting setting;
  std::string why;  ///< "without --optimizer lars", "with --no-augment"
};

/// Such options of one training. For commands whose trainings set options themselves (converge, study), some
/// of them may have an effect after all.
[[nodiscard]] std::vector<UnreadOption> unread_options(const Settings& settings);

/// "--trust changes nothing without --optimizer lars"
[[nodiscard]] std::string sentence(const UnreadOption& unread);

}  // namespace paceline::cli
