#pragma once

/// The one clock of all measurements: steady, nanoseconds, host side.

#include <sys/resource.h>
#include <time.h>

#include <chrono>

namespace paceline::base {

/// Seconds of a clock of the system, such as CLOCK_REALTIME.
[[nodiscard]] inline double seconds_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}
/// Seconds that the calling thread has run on a processor.
///
/// Cost     a system call, about 0.2 us
[[nodiscard]] inline double thread_processor_s() { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }

/// Seconds on processors, of programs and for them of the system, as getrusage() gives them.
[[nodiscard]] inline double processor_s(const rusage& used) {
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;

[[nodiscard]] inline double seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}
[[nodiscard]] inline double seconds_since(TimePoint begin) { return seconds(Clock::now() - begin); }

/// A deadline of somebody who looks at it many times a second. Time in which nobody looked does not count:
/// the process was stopped, and most likely so was the one that it waits for.
class WatchedDeadline {
 public:
  explicit WatchedDeadline(Clock::duration time, TimePoint now = Clock::now())
      : seen_(now), until_(now + time) {}

  [[nodiscard]] bool is_over(TimePoint now = Clock::now()) {
    constexpr std::chrono::seconds kStopped{2};
    if (now - seen_ > kStopped) until_ += now - seen_;
    seen_ = now;
    return now >= until_;
  }
  [[nodiscard]] TimePoint until() const { return until_; }

 private:
  TimePoint seen_, until_;
};

}  // namespace paceline::base
