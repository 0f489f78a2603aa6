#pragma once

/// Options that were given and change nothing beside the others that were given.

#include <string>
#include <vector>

#include "cli/settings.h"
#include "measure/setting.h"

namespace paceline::cli {

struct UnreadOption {
  measure::Setting setting;
  std::string why;  ///< "without --optimizer lars", "with --no-augment"
};

/// Those of one training. Of commands whose trainings bring options of their own (converge, study) more may
/// be read than this says.
[[nodiscard]] std::vector<UnreadOption> unread_options(const Settings& settings);

/// "--trust changes nothing without --optimizer lars"
[[nodiscard]] std::string sentence(const UnreadOption& unread);

}  // namespace paceline::cli
