#pragma once

/// A thread that calls a function again and again until it is destroyed.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace paceline::comm::nccl {

class Watch {
 public:
  /// Calls `look`, which must not throw, every `pause`, and a last time when it is destroyed.
  ///
  /// Errors   std::system_error when the system refuses the thread
  Watch(std::chrono::milliseconds pause, std::function<void()> look);
  /// Returns when `look` is not running any more.
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace paceline::comm::nccl
