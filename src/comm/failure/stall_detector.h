#pragma once

/// What a rank that waits sees of the other ranks of its process, or what the process's group sees of all
/// when none waits: who keeps the others waiting, and whether all hang, by the same rule as between processes
/// (comm/failure/rank_status.h).
///
/// Threads  one

#include <chrono>
#include <vector>

#include "base/clock.h"
#include "comm/failure/rank_status.h"

namespace paceline::comm::local {

class StallDetector {
 public:
  /// `began`: since when it waits; `look`: how long from one look to the next.
  StallDetector(base::TimePoint began, std::chrono::milliseconds look, std::chrono::milliseconds held_up)
      : began_(began), last_(began), look_(look), held_up_(held_up) {}

  /// One look: `places` [rank], of which those in `came` wait too; `has_worked`: any thread of the process
  /// has, since the last look.
  [[nodiscard]] HeldUp look(const std::vector<RankStatus>& places, const std::vector<bool>& came,
                            bool has_worked, base::TimePoint now);

 private:
  base::TimePoint began_, last_;
  const std::chrono::milliseconds look_, held_up_;
  std::vector<WatchedProcess> seen_;  ///< [rank]; empty before the first look
};

}  // namespace paceline::comm::local
