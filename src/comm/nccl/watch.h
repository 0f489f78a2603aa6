#pragma once

/// A thread that looks at something again and again, until it is told to end.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace paceline::comm::nccl {

class Watch {
 public:
  /// Calls `look` every `pause`; it throws nothing. Errors   std::system_error where there is no thread
  Watch(std::chrono::milliseconds pause, std::function<void()> look);
  /// `look` is not being called any more when this returns.
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
