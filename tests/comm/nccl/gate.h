#pragma once

/// A call of a library that does not return: threads that come to a shut gate stay there until it is opened.

#include <condition_variable>
#include <mutex>

namespace paceline::comm {

/// Threads  any
class Gate {
 public:
  void shut() {
    const std::lock_guard lock(mutex_);
    is_shut_ = true;
  }
  void open() {
    const std::lock_guard lock(mutex_);
    is_shut_ = false;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !is_shut_; });
    --waiting_;
  }
  /// Waits until a thread stays at the gate, which is shut.
  void wait_for_one() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_ > 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_shut_ = false;
  int waiting_ = 0;
};

}  // namespace paceline::comm
