#pragma once

/// Whether a process does anything: processor time, or blocks that are read or written.
///
/// Threads  one

#include <cstdint>

#include "base/clock.h"

namespace paceline::comm {

/// What processor time says: work, from one percent of a core on. A process that only stays alive is now and
/// then charged some milliseconds at once, most of which its machine has spent on others. So how much it was
/// does not count, only for how long: busy for about a second, less half of the time in which it was not,
/// is work, and the next second counts anew. One charge of any size is none, unless the work before it had
/// begun to fill such a second.
class Effort {
 public:
  /// Whether with `spent_s` of processor time in the last `elapsed_s` it has worked.
  [[nodiscard]] bool is_work(double spent_s, double elapsed_s);

 private:
  double busy_s_ = 0;
};

class WorkMeter {
 public:
  /// Since the last call, by all threads but the one that asks. The first call knows of everything before it.
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
