#pragma once

/// Whether other programs took processors from a run while it was measured. A study that measures and an
/// analysis that reads records go by the same rule.

#include <string>

#include "measure/record.h"

namespace paceline::measure {

/// Other programs kept more than a tenth of the record's cores busy: its times are somebody else's too. False
/// where nobody knows (window.others_cores is empty).
[[nodiscard]] bool is_disturbed(const Record& record);

/// "other programs kept 0.75 of 2 cores busy". Precondition: the record knows how many.
[[nodiscard]] std::string disturbance(const Record& record);

}  // namespace paceline::measure
