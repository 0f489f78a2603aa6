#pragma once

/// A pool of objects that are expensive to make, lent to any thread for a short time.

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace paceline::base {

/// Keeps as many objects as were ever in use at once. Objects are not reset: a borrower finds the state that
/// the last one left.
///
/// Cost     acquire() and the end of a Lease lock the mutex once each, to move a pointer. While the pool
///          grows, acquire() also allocates and makes an object
/// Threads  any number at once
template <typename T>
class ObjectPool {
 public:
  /// Holds a borrowed object and returns it to the pool when destroyed. The pool must live longer.
  class Lease {
   public:
    Lease(ObjectPool& pool, std::unique_ptr<T> object) : pool_(pool), object_(std::move(object)) {}
    ~Lease() { pool_.release(std::move(object_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    T* operator->() const { return object_.get(); }
    T& operator*() const { return *object_; }

   private:
    ObjectPool& pool_;
    std::unique_ptr<T> object_;
  };

  [[nodiscard]] Lease acquire() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        auto object = std::move(idle_.back());
        idle_.pop_back();
        return Lease(*this, std::move(object));
      }
      idle_.reserve(++made_);  // so that release() never has to allocate, and cannot fail
    }
    return Lease(*this, std::make_unique<T>());
  }

 private:
  void release(std::unique_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(object));
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<T>> idle_;
  std::size_t made_ = 0;
};

}  // namespace paceline::base
