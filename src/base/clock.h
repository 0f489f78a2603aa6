#pragma once

/// The one clock of all measurements: steady, nanoseconds, host side.

#include <chrono>

namespace paceline::base {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;

[[nodiscard]] inline double seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}
[[nodiscard]] inline double seconds_since(TimePoint begin) { return seconds(Clock::now() - begin); }

}  // namespace paceline::base
