#pragma once

/// Ends a process whose run has failed but that does not exit: a worker that hangs in a read of a dead disk
/// cannot be joined. With several processes the Session does this, since it knows all their failures.

#include <chrono>
#include <string>
#include <thread>

#include "base/error.h"

namespace paceline::cli {

/// The time from a run's failure to the forced end, for writing a record to a slow disk: 20 s, or the seconds
/// of PACELINE_END_WITHIN, which tests set so as not to wait. Anything but a whole number from 1 is 20 s too.
[[nodiscard]] std::chrono::seconds time_to_end();

class ExitWatchdog {
 public:
  /// Call once, when the run has failed: ends the process with a message unless this object is destroyed
  /// within time_to_end().
  void begin(const std::string& text, base::ErrorKind kind);

 private:
  std::jthread thread_;
};

}  // namespace paceline::cli
