#pragma once

/// Threads that share out the items of one loop at a time, and sleep between loops.
///
/// Each thread has a range of neighbouring items, which it takes from the front: loops over the same samples
/// in the same order find them in the caches of the same core. Who has finished its own range takes from the
/// end of another's.
///
/// Made for cores that other programs use as well: a thread that lost its core holds up no more than the item
/// in its hands, and a thread without work spins for a few microseconds and then sleeps in the kernel
/// (futex), so that waiting takes nobody's time. Which thread computes an item is chance in the end: what
/// must not depend on chance belongs to the item, never to the thread.
///
/// Threads   one caller at a time. Helpers inherit the cores of the thread that makes the pool.
/// Lifetime  helpers end with the pool.

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "base/start_thread.h"

namespace paceline::base {

class ThreadPool {
 public:
  /// `threads` >= 1 in all: the caller, and helpers that call `on_start` once.
  ///
  /// Errors   Error(device) when the system refuses a thread; those that were started have ended then
  explicit ThreadPool(int threads, const std::function<void()>& on_start = {},
                      const StartThread& start = start_thread);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int threads() const { return static_cast<int>(helpers_.size()) + 1; }

  /// Calls work(item, thread) once for every item of [0, count), from threads numbered [0, threads());
  /// returns when all are done. The caller is thread 0.
  ///
  /// Cost     about 1 us when the helpers are awake, a futex wake each when they sleep; nothing for one item
  /// Errors   the first exception that leaves `work` is thrown here, after the other items were done
  template <typename Work>
  void run(int count, const Work& work) {
    if (count <= 1 || helpers_.empty()) {
      for (int item = 0; item < count; ++item) work(item, 0);
      return;
    }
    run_shared(
        count,
        [](const void* context, int item, int thread) { (*static_cast<const Work*>(context))(item, thread); },
        &work);
  }

  /// Where the range of thread `thread` of `threads` begins, of `count` items; that of `threads` is the end.
  [[nodiscard]] static int first_of(int thread, int threads, int count) {
    return static_cast<int>(std::int64_t{1} * count * thread / threads);
  }

 private:
  using Call = void (*)(const void* context, int item, int thread);

  /// What a thread has left: [next item : 32 | end : 32]. The owner raises the next item, others lower the
  /// end; whoever succeeds owns the item. Each on a line of its own.
  struct alignas(64) WorkRange {
    std::atomic<std::uint64_t> left{0};
  };

  void end();
  void run_shared(int count, Call call, const void* context);
  void help(int thread, const std::function<void()>& on_start);
  void take_items(int thread);
  [[nodiscard]] bool take_one(int from, int thread);

  // The loop that goes on. The fields are written before the ranges show its items, and stay as they are
  // until all of them are done: whoever has won an item, and only then, reads the right ones. Between loops
  // all ranges are empty; a thread that comes late wins nothing, or an item of the loop that goes on by now.
  std::vector<WorkRange> ranges_;  ///< [thread]
  std::atomic<int> count_{0};
  std::atomic<Call> call_{nullptr};
  std::atomic<const void*> context_{nullptr};
  std::atomic<int> done_{0};

  std::atomic<std::uint32_t> loops_{0};  ///< begun so far; the helpers wait for it to change
  std::atomic<bool> ends_{false};
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;  ///< written by whoever sets failed_, read when all items are done
  std::vector<std::jthread> helpers_;
};

}  // namespace paceline::base
