#pragma once

/// A thread that runs one task after another in the background.

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

/// The destructor waits for all tasks.
///
/// Threads  all functions: any thread. Tasks run in one thread of their own, started by the first add()
class BackgroundTasks {
 public:
  /// `thread` names the thread in the error when the system refuses it: "the thread that writes checkpoints".
  explicit BackgroundTasks(std::string thread) : name_(std::move(thread)) {}
  ~BackgroundTasks();
  BackgroundTasks(const BackgroundTasks&) = delete;
  BackgroundTasks& operator=(const BackgroundTasks&) = delete;

  /// Errors   Error(device) when the system refuses the thread
  void add(std::function<void()> task);

  /// Whether every task is done.
  [[nodiscard]] bool is_idle();
  /// The same, after waiting for at most `most`.
  [[nodiscard]] bool wait_until_idle(std::chrono::milliseconds most);
  /// Seconds that the current task has taken so far; 0 when idle.
  [[nodiscard]] double busy_s();
  /// Throws the exception of the first task that failed; later calls do nothing.
  void rethrow();

 private:
  void run();

  const std::string name_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;  ///< the first is the current one
  std::optional<TimePoint> since_;           ///< when the current one began
  std::exception_ptr error_;
  bool ends_ = false;
  std::thread thread_;  ///< last: it uses all of the above
};

}  // namespace paceline::base
