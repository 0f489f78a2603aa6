#include "base/background_tasks.h"

#include <system_error>
#include <utility>

#include "base/start_thread.h"

namespace paceline::base {

BackgroundTasks::~BackgroundTasks() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void BackgroundTasks::add(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error& error) {
      throw refused_thread(name_, error);
    }
  }
  tasks_.push_back(std::move(task));
  changed_.notify_all();
}

bool BackgroundTasks::is_idle() {
  const std::lock_guard lock(mutex_);
  return tasks_.empty();
}

bool BackgroundTasks::wait_until_idle(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, most, [this] { return tasks_.empty(); });
}

double BackgroundTasks::busy_s() {
  const std::lock_guard lock(mutex_);
  return since_ ? seconds_since(*since_) : 0;
}

void BackgroundTasks::rethrow() {
  std::exception_ptr error;
  {
    const std::lock_guard lock(mutex_);
    error = std::exchange(error_, nullptr);
  }
  if (error) std::rethrow_exception(error);
}

void BackgroundTasks::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    since_ = Clock::now();
    auto& task = tasks_.front();  // stays where it is: others are added behind it
    lock.unlock();
    std::exception_ptr error;
    try {
      task();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && !error_) error_ = error;
    tasks_.pop_front();
    since_.reset();
    changed_.notify_all();
  }
}

}  // namespace paceline::base
