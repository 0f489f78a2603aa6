#include "measure/pauses.h"

#include <system_error>

#include "base/clock.h"

namespace paceline::measure {

Clocks clocks_now() {
  return {.running_s = base::seconds_of(CLOCK_MONOTONIC),
          .with_sleep_s = base::seconds_of(CLOCK_BOOTTIME),
          .of_day_s = base::seconds_of(CLOCK_REALTIME),
          .processor_s = base::seconds_of(CLOCK_PROCESS_CPUTIME_ID)};
}

double paused_between(const Clocks& before, const Clocks& after, int threads) {
  constexpr double kBeat_s = 1e-3 * static_cast<double>(kBeat.count());
  /// Of a core: what a process that gets ahead has at least, beside many others.
  constexpr double kAhead = 0.1;
  /// A clock that is set by less is corrected, not behind.
  constexpr double kSet_s = 0.5;
  double paused_s = 0;
  const double late_s = after.running_s - before.running_s - kBeat_s;
  const double worked_s = after.processor_s - before.processor_s;
  // Before the pause, and between its end and this look, all threads may have worked for a beat.
  if (late_s > kLate_s && worked_s < 2 * kBeat_s * threads + kAhead * late_s) paused_s += late_s;
  const double slept_s = after.with_sleep_s - before.with_sleep_s - (after.running_s - before.running_s);
  if (slept_s > kLate_s) paused_s += slept_s;
  const double set_s = after.of_day_s - before.of_day_s - (after.with_sleep_s - before.with_sleep_s);
  if (set_s > kSet_s) paused_s += set_s;
  return paused_s;
}

PauseWatch::PauseWatch(int threads) : threads_(threads) {
  try {
    thread_ = std::jthread([this](const std::stop_token& stop) {
      std::unique_lock lock(mutex_);
      while (!wake_.wait_for(lock, stop, kBeat, [] { return false; }) && !stop.stop_requested()) look();
    });
  } catch (const std::system_error&) {
    // seconds() says that nobody has looked.
  }
}

void PauseWatch::begin() {
  const std::lock_guard lock(mutex_);
  last_ = clocks_now();
  paused_s_ = 0;
}

std::optional<double> PauseWatch::seconds() {
  if (!thread_.joinable()) return std::nullopt;
  const std::lock_guard lock(mutex_);
  look();
  return paused_s_;
}

void PauseWatch::look() {
  const Clocks now = clocks_now();
  paused_s_ += paused_between(last_, now, threads_);
  last_ = now;
}

}  // namespace paceline::measure
