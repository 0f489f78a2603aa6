#pragma once

/// The end of a process whose run has failed and that does not come to its end: a worker that hangs in a read
/// of a dead disk cannot be joined. Among processes the session does it, which knows of all their failures.

#include <chrono>
#include <string>
#include <thread>

#include "base/error.h"

namespace paceline::cli {

/// From a run's failure to its process's end: what a record on a slow disk may take.
inline constexpr std::chrono::seconds kToWriteTheEnd{20};

class ExitWatchdog {
 public:
  /// The run has failed: unless this object is destroyed in kToWriteTheEnd, says so and ends the process.
  /// Once.
  void begin(const std::string& text, base::ErrorKind kind);

 private:
  std::jthread thread_;
};

}  // namespace paceline::cli
