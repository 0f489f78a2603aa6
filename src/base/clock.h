#pragma once

/// The one clock of all measurements: steady, nanoseconds, host side.

#include <time.h>

#include <chrono>

namespace paceline::base {

/// Seconds that the calling thread has run on a processor.
///
/// Cost     a system call, about 0.2 us
[[nodiscard]] inline double thread_processor_s() {
  timespec spent{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) + 1e-9 * static_cast<double>(spent.tv_nsec);
}

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;

[[nodiscard]] inline double seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}
[[nodiscard]] inline double seconds_since(TimePoint begin) { return seconds(Clock::now() - begin); }

}  // namespace paceline::base
