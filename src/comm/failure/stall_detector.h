#pragma once

/// Detects stalled ranks inside one process: which rank the waiting ranks wait for, or whether all hang. It
/// applies the rule that is used between processes (comm/failure/rank_status.h) to the ranks of a process. A
/// waiting rank uses it, or the process's group while no rank waits.
///
/// Threads  one

#include <chrono>
#include <vector>

#include "base/clock.h"
#include "comm/failure/rank_status.h"

namespace paceline::comm::local {

class StallDetector {
 public:
  /// `began`: when the waiting began; `look`: the time between two looks.
  StallDetector(base::TimePoint began, std::chrono::milliseconds look, std::chrono::milliseconds held_up)
      : began_(began), last_(began), look_(look), held_up_(held_up) {}

  /// One look. `places` [rank] are the ranks' states; ranks in `came` wait. `has_worked`: whether any thread
  /// of the process has worked since the last look.
  [[nodiscard]] HeldUp look(const std::vector<RankStatus>& places, const std::vector<bool>& came,
                            bool has_worked, base::TimePoint now);

 private:
  base::TimePoint began_, last_;
  const std::chrono::milliseconds look_, held_up_;
  std::vector<WatchedProcess> seen_;  ///< [rank]; empty before the first look
};

}  // namespace paceline::comm::local
