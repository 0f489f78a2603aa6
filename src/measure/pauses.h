#pragma once

/// Notices when a process stands still: stopped (SIGSTOP, a frozen cgroup), together with its machine (a
/// suspended laptop, a virtual machine that migrates, a core that its host has taken), or by its clock.
///
/// A thread sleeps for kBeat and looks at the clocks. A late look alone is no pause, since on a busy machine
/// this thread may wait for a core while the workers compute: in a pause the process has no processor time.

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

namespace paceline::measure {

/// The clocks at one moment, in seconds.
struct Clocks {
  double running_s = 0;  ///< CLOCK_MONOTONIC, which measures the run; stands still while the machine sleeps
  double with_sleep_s = 0;  ///< CLOCK_BOOTTIME: the same, and the sleep
  double of_day_s = 0;      ///< CLOCK_REALTIME, which is set forward after a pause that no clock has seen
  double processor_s = 0;   ///< of all threads of this process
};
[[nodiscard]] Clocks clocks_now();

/// How long a look may be late, and how far clocks may drift apart, before it counts as a pause.
inline constexpr double kLate_s = 0.2;
inline constexpr std::chrono::milliseconds kBeat{20};

/// The seconds for which the process stood still between two looks that were to be kBeat apart; 0: it did
/// not. `threads`: those of the process that compute. A pure function.
[[nodiscard]] double paused_between(const Clocks& before, const Clocks& after, int threads);

/// Threads  any
/// Cost     a look every 20 ms, of some microseconds
class PauseWatch {
 public:
  explicit PauseWatch(int threads);

  /// Counts from now on.
  void begin();
  /// The seconds of all pauses since begin(), also of one that has just ended. None if the system refused the
  /// thread: nobody has looked.
  [[nodiscard]] std::optional<double> seconds();

 private:
  void look();  ///< requires mutex_

  const int threads_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  Clocks last_ = clocks_now();
  double paused_s_ = 0;
  std::jthread thread_;  ///< last: it uses the above
};

}  // namespace paceline::measure
