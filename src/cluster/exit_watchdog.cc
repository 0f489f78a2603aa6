#include "cluster/exit_watchdog.h"

#include <fmt/format.h>

#include <cstdlib>
#include <system_error>

#include "cluster/guard.h"
#include "cluster/log.h"

namespace paceline::cluster {

std::chrono::seconds time_to_end() {
  constexpr int kSeconds = 20;
  const char* const text = std::getenv("PACELINE_END_WITHIN");
  const int seconds = text == nullptr ? kSeconds : std::atoi(text);
  return std::chrono::seconds(seconds >= 1 ? seconds : kSeconds);
}

void ExitWatchdog::begin(const std::string& text, base::ErrorKind kind) {
  if (thread_.joinable()) return;
  const auto end = [this, text, kind, within = time_to_end()](const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    const bool hangs = wake_.wait_for(lock, stop, within, [this] { return !hang_.empty(); });
    if (hangs) wake_.wait_for(lock, stop, kToEndWithoutGpu, [] { return false; });
    if (stop.stop_requested()) return;
    log_line(hangs ? fmt::format("{}; this process cannot end by itself: {}; it is ended", text, hang_)
                   : fmt::format("{}; this process has not ended {} s after that, most likely in a read "
                                 "or write that hangs; it is ended",
                                 text, within.count()));
    Guard::say_farewell();
    std::_Exit(static_cast<int>(kind));
  };
  try {
    thread_ = std::jthread(end);
  } catch (const std::system_error&) {
    // The system refuses threads, which most likely made the run fail; it then ends without a watchdog.
  }
}

void ExitWatchdog::hurry(const std::string& what) {
  const std::lock_guard lock(mutex_);
  if (hang_.empty()) hang_ = what;
  wake_.notify_one();
}

}  // namespace paceline::cluster
