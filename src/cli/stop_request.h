#pragma once

/// That a `paceline launch` was told to end: by a signal, once or twice.

#include <chrono>

namespace paceline::cli {

/// While one lives, SIGTERM, SIGINT and, unless it is ignored (nohup), SIGHUP are noted and do nothing else;
/// before and after they do what they did. Ctrl-Z (SIGTSTP) is noted too.
///
/// Threads  at most one at a time in a process
class StopRequest {
 public:
  StopRequest();
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  /// The signal that asks to end; 0: none has come.
  [[nodiscard]] int signal() const;
  /// A second one has come, later than shells repeat one: everything is to end at once.
  [[nodiscard]] bool is_urgent() const;
  /// Returns after `time`, or at once when a signal has come; true: one has.
  bool wait(std::chrono::milliseconds time) const;
  /// Whether Ctrl-Z has come since the last call.
  [[nodiscard]] bool take_suspension() const;

  /// In a child, between fork() and exec(): signals do what they did before.
  void restore_in_child() const;
};

}  // namespace paceline::cli
