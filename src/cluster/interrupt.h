#pragma once

/// Handles Ctrl-C: the first press asks the run to stop after its step and keep its results; the second ends
/// the process at once.

#include <time.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <thread>

namespace paceline::cluster {

// The clock and the time limit by which a signal handler tells a second Ctrl-C from a repetition of the
// first.

/// `timeout` and shells signal a process and then its group, so the process gets the same signal twice. A
/// signal counts as a second Ctrl-C only if it comes at least so many milliseconds after the first one.
inline constexpr std::int64_t kSameSignalMs = 300;

/// Milliseconds of a monotonic clock.
///
/// Threads  any; also in a signal handler
[[nodiscard]] inline std::int64_t now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{1000} * now.tv_sec + now.tv_nsec / 1000000;
}

/// While an object exists, SIGTERM, SIGINT and, unless ignored (nohup), SIGHUP are only recorded; before and
/// after, they have their former action. Ctrl-Z (SIGTSTP) is recorded too.
///
/// Threads  at most one at a time in a process
class StopRequest {
 public:
  StopRequest();
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  /// The signal that asks to stop; 0: none so far.
  [[nodiscard]] int signal() const;
  /// Whether a second signal has come, after the time in which shells repeat one: everything must end at
  /// once.
  [[nodiscard]] bool is_urgent() const;
  /// Waits for `time`, or until a signal comes; returns whether one has come.
  bool wait(std::chrono::milliseconds time) const;
  /// Whether Ctrl-Z has come since the last call.
  [[nodiscard]] bool take_suspension() const;

  /// In a child, between fork() and exec(): restores the former actions of signals.
  void restore_in_child() const;
};

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
  /// Another process of the run was asked to stop, by `signal` (0: it is not known yet by which): requests
  /// the stop here too, without a message.
  ///
  /// Threads  any
  void hear(int signal);
  /// The signal that stopped the run, here or, the highest, as others were heard; 0: none.
  [[nodiscard]] int signal() const;
  /// 0, or the exit code for that signal: 130 for Ctrl-C, 143 for SIGTERM, 129 for SIGHUP.
  [[nodiscard]] int exit_code() const;

 private:
  std::atomic<int> heard_{0};  ///< of other processes
  std::stop_source source_;
  std::jthread watcher_;
};

}  // namespace paceline::cluster
