#pragma once

/// Decides whether other programs used the processors or GPUs of a run while it was measured. Studies and
/// analysis use the same rule.

#include <string>

#include "measure/record.h"

namespace paceline::measure {

/// Whether other programs kept more than a tenth of the record's cores busy, or had one of its GPUs open, so
/// that its times are unreliable. False if that is unknown (window.others_cores is empty, and no GPU lists
/// its processes).
[[nodiscard]] bool is_disturbed(const Record& record);

/// The same for processors alone. (Of a process on a GPU it is not known whether it computes or is idle.)
[[nodiscard]] bool are_cores_disturbed(const Record& record);

/// Whether the record says if there were other programs, on processors or GPUs.
[[nodiscard]] bool knows_others(const Record& record);

/// "other programs kept 0.75 of 2 cores busy", "python3 (process 41) was on GPU 0 too", or both.
///
/// Requires  is_disturbed(record)
[[nodiscard]] std::string disturbance(const Record& record);

/// The part about GPUs alone; "" if no other program used them. Every other process seen on a GPU counts,
/// even for a part of the window and even if idle, since it holds memory and may compute at any time.
[[nodiscard]] std::string disturbance_of_gpus(const Record& record);

}  // namespace paceline::measure
