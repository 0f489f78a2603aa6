#pragma once

/// The clock and the time limit by which a signal handler tells a second Ctrl-C from a repetition of the
/// first.

#include <time.h>

#include <cstdint>

namespace paceline::cluster {

/// `timeout` and shells signal a process and then its group, so the process gets the same signal twice. A
/// signal counts as a second Ctrl-C only if it comes at least so many milliseconds after the first one.
inline constexpr std::int64_t kSamePressMs = 300;

/// Milliseconds of a monotonic clock.
///
/// Threads  any; also in a signal handler
[[nodiscard]] inline std::int64_t now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{1000} * now.tv_sec + now.tv_nsec / 1000000;
}

}  // namespace paceline::cluster
