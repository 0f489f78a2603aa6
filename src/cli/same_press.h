#pragma once

/// Recognises two signals that come from one press of a key.

#include <time.h>

#include <cstdint>

namespace paceline::cli {

/// `timeout` and shells signal a process and then its group, so only a signal after this time counts as a
/// second press.
inline constexpr std::int64_t kSamePressMs = 300;

/// Milliseconds of a monotonic clock.
///
/// Threads  any; also in a signal handler
[[nodiscard]] inline std::int64_t now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{1000} * now.tv_sec + now.tv_nsec / 1000000;
}

}  // namespace paceline::cli
