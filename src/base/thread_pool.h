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
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/process.h"

namespace paceline::base {

/// Sleeps for `time`, or until a stop is requested; returns whether it was.
[[nodiscard]] bool stopped_within(const std::stop_token& stop, std::chrono::milliseconds time);

// A thread that runs one task after another in the background.

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

// Starts threads, and makes the error for a thread that the system refuses. The system says EAGAIN for every
// limit, so the error lists the limits that are set.

/// Starts a thread, as start_thread() does; tests pass a function that fails.
using StartThread = std::function<std::jthread(std::function<void()>)>;

/// Errors   std::system_error when the system refuses
[[nodiscard]] std::jthread start_thread(std::function<void()> work);

/// Whether `error` means that the system refused a thread.
[[nodiscard]] bool is_refused_thread(const std::system_error& error);

/// The Error(device) to throw instead. `which` begins the sentence: "worker thread 2 of 4".
[[nodiscard]] Error refused_thread(const std::string& which, const std::system_error& error,
                                   const CgroupLimits& cgroup = cgroup_limits());

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
