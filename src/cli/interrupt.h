#pragma once

/// Ctrl-C, twice told: the first press asks the run to stop after its step and keep what it has; the second
/// ends the process at once.

#include <functional>
#include <stop_token>
#include <thread>

namespace paceline::cli {

/// While one lives, SIGINT, SIGTERM and, unless it is ignored (nohup), SIGHUP are handled as above; before
/// and after they do what they did. The handler only writes a byte to a pipe (async-signal-safe); a thread
/// reads it, says so and requests the stop.
///
/// Threads  at most one at a time in a process
class Interrupt {
 public:
  /// `silent`, if given, is asked at a signal, from another thread, whether nothing is to be said of it.
  explicit Interrupt(std::function<bool()> silent = {});
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  [[nodiscard]] std::stop_token token() const { return source_.get_token(); }
  /// 0, or the exit code that says which signal stopped the run: 130 for Ctrl-C, 143 for SIGTERM, 129 for
  /// SIGHUP.
  [[nodiscard]] int exit_code() const;

 private:
  std::stop_source source_;
  std::jthread watcher_;
};

}  // namespace paceline::cli
