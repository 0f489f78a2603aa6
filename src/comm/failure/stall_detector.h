#pragma once

/// Detects stalled ranks inside one process: which rank the waiting ranks wait for, or whether all hang. It
/// applies the rule that is used between processes (comm/failure/rank_status.h) to the ranks of a process. A
/// waiting rank uses it, or the process's group while no rank waits.
///
/// Threads  one

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "comm/failure/rank_status.h"

namespace paceline::comm {

// Detects whether a process does work: processor time, or blocks read or written.
//
// Threads  one

/// Decides from processor time whether a process works: 30 ms or more at once, or more than one percent of a
/// core for about a second. An idle process is now and then charged some milliseconds at once, which the
/// machine spent on others. So amounts below 30 ms count only by their duration: 0.8 s of busy intervals,
/// less half of the idle time between them, are work, and then counting starts again.
class Effort {
 public:
  /// Whether `spent_s` of processor time in the last `elapsed_s` means that the process has worked.
  [[nodiscard]] bool is_work(double spent_s, double elapsed_s);

 private:
  double busy_s_ = 0;
};

class WorkMeter {
 public:
  /// Whether any thread but the calling one has worked since the last call. The first call counts all
  /// processor time so far.
  ///
  /// Cost     two system calls
  [[nodiscard]] bool has_worked();

 private:
  base::TimePoint asked_ = base::Clock::now();
  double processor_s_ = 0;
  std::int64_t blocks_ = 0;
  Effort effort_;
};

// When and how a process reports that some of its workers wait too long for others.

struct StallOptions {
  /// How long a collective may wait for a worker before the first warning.
  std::chrono::milliseconds held_up{3000};
  /// Prints a warning. Called from a worker's thread or from a thread of the communicator. Of warnings about
  /// one late worker it prints only those of a run of one process: with several processes, process 0 finds
  /// late workers by itself. If it is empty, nothing is printed, and nobody checks whether all workers hang
  /// at once.
  std::function<void(const std::string&)> say = {};
  /// Called once, with the reason, when a collective of the workers fails for any reason; must be quick. The
  /// communicators of the workers own it.
  std::function<void(const std::string&, base::ErrorKind)> failed = {};
};

}  // namespace paceline::comm

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
