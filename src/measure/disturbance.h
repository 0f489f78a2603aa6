#pragma once

/// Whether other programs used the processors or GPUs of a run while it was measured. Studies and analysis
/// use the same rule.

#include <string>

#include "measure/record.h"

namespace paceline::measure {

/// Whether other programs kept more than a tenth of the record's cores busy, or were on one of its GPUs, so
/// that its times are unreliable. False if that is unknown (window.others_cores is empty, and no GPU tells
/// its processes).
[[nodiscard]] bool is_disturbed(const Record& record);

/// The same, for processors alone. A process on a GPU may be idle, which nothing tells.
[[nodiscard]] bool are_cores_disturbed(const Record& record);

/// Whether the record knows of other programs, on processors or GPUs.
[[nodiscard]] bool knows_others(const Record& record);

/// "other programs kept 0.75 of 2 cores busy", "python3 (process 41) was on GPU 0 too", or both.
///
/// Requires  is_disturbed(record)
[[nodiscard]] std::string disturbance(const Record& record);

/// Of GPUs alone; "" where nobody else was there. A process that came and went counts: one that is there,
/// even if it computes nothing for the moment, holds memory and may compute at any time.
[[nodiscard]] std::string disturbance_of_gpus(const Record& record);

}  // namespace paceline::measure
