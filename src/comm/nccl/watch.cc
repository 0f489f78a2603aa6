#include "comm/nccl/watch.h"

#include <utility>

namespace paceline::comm::nccl {

Watch::Watch(std::chrono::milliseconds pause, std::function<void()> look)
    : thread_([this, pause, look = std::move(look)] {
        std::unique_lock lock(mutex_);
        for (bool is_last = false; !is_last;) {
          is_last = wake_.wait_for(lock, pause, [this] { return is_over_; });
          lock.unlock();
          look();
          lock.lock();
        }
      }) {}

Watch::~Watch() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

}  // namespace paceline::comm::nccl
