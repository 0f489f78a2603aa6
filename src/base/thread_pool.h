#pragma once

/// A thread pool that runs one loop at a time and sleeps between loops.
///
/// Each thread has a range of neighbouring items and takes them from the front. So loops over the same
/// samples in the same order find them in the caches of the same core. A thread that has finished its range
/// takes items from the end of another thread's range.
///
/// It suits cores that other programs use too: a thread that loses its core delays only its current item, and
/// a thread without work spins for a few microseconds, then sleeps (futex). Which thread computes an item is
/// not deterministic, so results must depend on the item, never on the thread.
///
/// Threads   one caller at a time. Helpers inherit the affinity of the thread that makes the pool
/// Lifetime  helpers end with the pool

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
  /// `threads` >= 1 counts the caller. Each helper calls `on_start` once.
  ///
  /// Errors   Error(device) when the system refuses a thread; the others have ended then
  explicit ThreadPool(int threads, const std::function<void()>& on_start = {},
                      const StartThread& start = start_thread);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int threads() const { return static_cast<int>(helpers_.size()) + 1; }

  /// Calls work(item, thread) once for every item of [0, count), from threads numbered [0, threads());
  /// returns when all are done. The caller is thread 0.
  ///
  /// Cost     about 1 us when the helpers are awake, a futex wake each when they sleep; none for one item
  /// Errors   the first exception of `work`, thrown here after all other items are done
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

  /// The first of `count` items in the range of thread `thread` of `threads`; for `thread` = `threads`:
  /// count.
  [[nodiscard]] static int first_of(int thread, int threads, int count) {
    return static_cast<int>(std::int64_t{1} * count * thread / threads);
  }

 private:
  using Call = void (*)(const void* context, int item, int thread);

  /// The remaining items of a thread: [next item : 32 | end : 32]. The owner raises the next item, others
  /// lower the end; whoever succeeds owns the item. Each range has its own cache line.
  struct alignas(64) WorkRange {
    std::atomic<std::uint64_t> left{0};
  };

  void end();
  void run_shared(int count, Call call, const void* context);
  void help(int thread, const std::function<void()>& on_start);
  void take_items(int thread);
  [[nodiscard]] bool take_one(int from, int thread);

  // The current loop. These fields are written before the ranges show its items, and do not change until all
  // items are done, so a thread that has won an item reads the right values. Between loops all ranges are
  // empty; a late thread wins nothing, or an item of the loop that runs by then.
  std::vector<WorkRange> ranges_;  ///< [thread]
  std::atomic<int> count_{0};
  std::atomic<Call> call_{nullptr};
  std::atomic<const void*> context_{nullptr};
  std::atomic<int> done_{0};

  std::atomic<std::uint32_t> loops_{0};  ///< loops begun so far; helpers wait for it to change
  std::atomic<bool> ends_{false};
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;  ///< written by the thread that sets failed_, read when all items are done
  std::vector<std::jthread> helpers_;
};

}  // namespace paceline::base
