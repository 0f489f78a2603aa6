#pragma once

/// Work that somebody need not wait for: a thread that does one task after the other.

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.h"

namespace paceline::base {

/// Threads  add() and the questions: any; tasks run in a thread of its own, which begins with the first of
///          them. Destroying it waits for all tasks.
class BackgroundTasks {
 public:
  /// `thread`: what it is called where the system refuses it, "the thread that writes checkpoints".
  explicit BackgroundTasks(std::string thread) : name_(std::move(thread)) {}
  ~BackgroundTasks();
  BackgroundTasks(const BackgroundTasks&) = delete;
  BackgroundTasks& operator=(const BackgroundTasks&) = delete;

  /// Errors   Error(device): the system refuses the thread
  void add(std::function<void()> task);

  /// Whether every task is done.
  [[nodiscard]] bool is_idle();
  /// The same after at most `most`.
  [[nodiscard]] bool wait_until_idle(std::chrono::milliseconds most);
  /// Seconds that the present task has taken so far; 0 when idle.
  [[nodiscard]] double busy_s();
  /// Throws what the first task that failed has thrown, once.
  void rethrow();

 private:
  void run();

  const std::string name_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;  ///< the first is the present one
  std::optional<TimePoint> since_;           ///< the present one began
  std::exception_ptr error_;
  bool ends_ = false;
  std::thread thread_;  ///< last: it uses all of the above
};

}  // namespace paceline::base
