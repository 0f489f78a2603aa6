#pragma once

/// Forwards the communicators' warnings about stalls to a listener.

#include <functional>
#include <mutex>
#include <string>
#include <utility>

namespace paceline::train {

/// Threads  any
class StallListener {
 public:
  /// Replaces the listener; empty: none.
  void listen(std::function<void(const std::string&)> listener) {
    const std::lock_guard lock(mutex_);
    listener_ = std::move(listener);
  }
  void hear(const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (listener_) listener_(text);
  }

 private:
  std::mutex mutex_;
  std::function<void(const std::string&)> listener_;
};

}  // namespace paceline::train
