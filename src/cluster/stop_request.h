#pragma once

/// Records that a `paceline launch` was told to stop, once or twice.

#include <chrono>

namespace paceline::cluster {

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

}  // namespace paceline::cluster
