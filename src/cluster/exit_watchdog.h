#pragma once

/// Ends a process whose run has failed but that does not exit: a worker that hangs in a read of a dead disk
/// or in a call of its GPU cannot be joined. With several processes the Session does this, since it knows all
/// their failures.

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "base/error.h"

namespace paceline::cluster {

/// The time from a run's failure to the forced end, for writing a record to a slow disk: 20 s, or the seconds
/// of PACELINE_END_WITHIN, which tests set so as not to wait. Anything but a whole number from 1 is 20 s too.
[[nodiscard]] std::chrono::seconds time_to_end();
/// The time from when a GPU does not answer any more to the forced end. This process then writes no more: it
/// would have to join the thread that waits for the GPU. Older records and checkpoints are complete, since
/// files are renamed when they are. A launcher may end the other processes with this one: they get the time
/// that a process that can exit gives them too (ProcessGroup::farewell).
inline constexpr std::chrono::seconds kToEndWithoutGpu{5};

class ExitWatchdog {
 public:
  /// Call once, when the run has failed: ends the process with a message unless this object is destroyed
  /// within time_to_end().
  void begin(const std::string& text, base::ErrorKind kind);
  /// Call when a GPU does not answer any more; `what` says which call does not return. From now on the time
  /// is kToEndWithoutGpu.
  ///
  /// Threads  any
  void hurry(const std::string& what);

 private:
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::string hang_;     ///< "": none
  std::jthread thread_;  ///< last: it uses all of the above
};

}  // namespace paceline::cluster
