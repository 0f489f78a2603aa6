#pragma once

/// Whether other programs used the processor while a run was measured. Studies and analysis use the same
/// rule.

#include <string>

#include "measure/record.h"

namespace paceline::measure {

/// Whether other programs kept more than a tenth of the record's cores busy, so that its times are
/// unreliable. False if that is unknown (window.others_cores is empty).
[[nodiscard]] bool is_disturbed(const Record& record);

/// "other programs kept 0.75 of 2 cores busy".
///
/// Requires  window.others_cores has a value
[[nodiscard]] std::string disturbance(const Record& record);

}  // namespace paceline::measure
