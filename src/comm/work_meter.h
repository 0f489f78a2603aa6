#pragma once

/// Whether a process does anything: processor time, or blocks that are read or written.
///
/// Threads  one

#include <cstdint>

#include "base/clock.h"

namespace paceline::comm {

/// What processor time says: work, where it is 30 ms or more at once, or more than one percent of a core for
/// a while. A process that only stays alive is now and then charged some milliseconds at once, most of which
/// its machine has spent on others. So of less than 30 ms it does not count how much it was, only for how
/// long: busy for 0.8 s, less half of the time in which it was not, is work, and what follows counts anew.
class Effort {
 public:
  /// Whether with `spent_s` of processor time in the last `elapsed_s` it has worked.
  [[nodiscard]] bool is_work(double spent_s, double elapsed_s);

 private:
  double busy_s_ = 0;
};

class WorkMeter {
 public:
  /// Since the last call, by all threads but the one that asks. The first call counts all their time until
  /// then as one charge.
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
