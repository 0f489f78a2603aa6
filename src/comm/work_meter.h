#pragma once

/// Whether a process does anything: processor time, or blocks that are read or written.
///
/// Threads  one

#include <cstdint>

#include "base/clock.h"

namespace paceline::comm {

class WorkMeter {
 public:
  /// Since the last call, by all threads but the one that asks. The first call knows of everything before it.
  ///
  /// Cost     two system calls
  [[nodiscard]] bool has_worked();

 private:
  base::TimePoint asked_{};
  double processor_s_ = 0;
  std::int64_t blocks_ = 0;
};

}  // namespace paceline::comm
