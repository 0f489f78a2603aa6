#pragma once

/// Detects whether a process does work: processor time, or blocks read or written.
///
/// Threads  one

#include <cstdint>

#include "base/clock.h"

namespace paceline::comm {

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

}  // namespace paceline::comm
