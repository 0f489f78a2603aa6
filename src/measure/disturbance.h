#pragma once

/// Whether other programs took processors or GPUs from a run while it was measured. A study that measures and
/// an analysis that reads records go by the same rule.

#include <string>

#include "measure/record.h"

namespace paceline::measure {

/// Other programs kept more than a tenth of the record's cores busy, or computed on one of its GPUs: its
/// times are somebody else's too. False where nobody knows (window.others_cores is empty, and no GPU tells
/// its processes).
[[nodiscard]] bool is_disturbed(const Record& record);

/// Whether the record knows of other programs, on processors or GPUs.
[[nodiscard]] bool knows_others(const Record& record);

/// "other programs kept 0.75 of 2 cores busy", "python3 (process 41) was on GPU 0 too", or both.
/// Precondition: it is disturbed.
[[nodiscard]] std::string disturbance(const Record& record);

/// Of GPUs alone; "" where nobody else was there. A process that came and went counts: one that is there,
/// even if it computes nothing for the moment, holds memory and may compute at any time.
[[nodiscard]] std::string disturbance_of_gpus(const Record& record);

}  // namespace paceline::measure
