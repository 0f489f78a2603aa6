#pragma once

/// Handles Ctrl-C: the first press asks the run to stop after its step and keep its results; the second ends
/// the process at once.

#include <functional>
#include <stop_token>
#include <thread>

namespace paceline::cluster {

/// While an object exists, it handles SIGINT, SIGTERM and, unless ignored (nohup), SIGHUP as above; before
/// and after, they have their former action. The handler only writes a byte to a pipe (async-signal-safe); a
/// thread reads it, prints a message and requests the stop.
///
/// Threads  at most one at a time in a process
class Interrupt {
 public:
  /// `silent`, if given, is called at a signal, from another thread; if true, no message is printed.
  explicit Interrupt(std::function<bool()> silent = {});
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  [[nodiscard]] std::stop_token token() const { return source_.get_token(); }
  /// 0, or the exit code for the signal that stopped the run: 130 for Ctrl-C, 143 for SIGTERM, 129 for
  /// SIGHUP.
  [[nodiscard]] int exit_code() const;

 private:
  std::stop_source source_;
  std::jthread watcher_;
};

}  // namespace paceline::cluster
