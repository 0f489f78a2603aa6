#pragma once

/// Looks for moments in which other programs leave the processors alone, and tells the user what they do.

#include <cstddef>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "cli/screen/screen.h"
#include "measure/disturbance.h"

namespace paceline::cli {

/// "other programs use 1.0 of 2 cores now (python3 0.9)"; without "of 2" if they use more than the `cores`
/// that the processes of this host are bound to.
[[nodiscard]] std::string text_about_load(const measure::LoadNow& load, int cores);

/// What others do, and whether timings will show it; also if they do nothing, or if that is not known.
[[nodiscard]] std::string text_about_timings(const std::optional<measure::LoadNow>& load, int cores);

/// Says which programs work now, if they do, and what that means for what is measured next.
///
/// Cost  one second
void say_load(int cores, Screen& screen);

/// The most that is waited in all, for each measurement that may follow.
inline constexpr double kMostWaitsOfRepeat_s = 3;

/// Waits before measurements that should not be disturbed. How long is bounded: two seconds for each of the
/// `measurements` that may follow at one time, three in all; after a wait in vain there is no other one.
class QuietMoment {
 public:
  /// Watches the load for so many seconds.
  using Look = std::function<std::optional<measure::LoadNow>(double seconds)>;

  QuietMoment(int cores, std::size_t measurements, Screen& screen, std::stop_token stop,
              Look look = measure::load_now);

  /// Returns as soon as other programs keep at most a tenth of the cores busy, or its time is over, or a stop
  /// is requested.
  void wait();
  [[nodiscard]] double waited_s() const { return waited_s_; }

 private:
  const int cores_;
  const double most_wait_s_, most_waits_s_;
  Screen& screen_;
  const std::stop_token stop_;
  const Look look_;
  double waited_s_ = 0;
  bool was_in_vain_ = false;
};

}  // namespace paceline::cli
