#pragma once

/// Handles Ctrl-C: the first press asks the run to stop after its step and keep its results; the second ends
/// the process at once.

#include <signal.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <initializer_list>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

namespace paceline::cluster {

/// While an object exists, `handler` gets the signals; before and after, they have their former action. What
/// was ignored of SIGHUP (nohup, whose purpose is to outlive the terminal) and SIGTSTP stays so.
class SignalActions {
 public:
  SignalActions(std::initializer_list<int> signals, void (*handler)(int));
  ~SignalActions() { restore(); }
  SignalActions(const SignalActions&) = delete;
  SignalActions& operator=(const SignalActions&) = delete;
  void restore() const;

 private:
  std::vector<std::pair<int, struct sigaction>> former_;
};

/// While an object exists, SIGTERM, SIGINT, SIGHUP and Ctrl-Z (SIGTSTP) are only recorded.
///
/// Threads  at most one of this and Interrupt at a time in a process
class StopRequest {
 public:
  StopRequest();

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
  void restore_in_child() const { actions_.restore(); }

 private:
  const SignalActions actions_;
};

/// While an object exists, it handles SIGINT, SIGTERM and SIGHUP as above. The handler only writes a byte to
/// a pipe (async-signal-safe); a thread reads it, prints a message and requests the stop.
///
/// Threads  at most one of this and StopRequest at a time in a process
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
  std::optional<SignalActions> actions_;
};

}  // namespace paceline::cluster
