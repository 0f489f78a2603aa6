#include "base/thread_pool.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/start_thread.h"

namespace paceline::base {
namespace {

/// About 20 us: longer than the gaps inside a step, and too short to slow other programs.
constexpr int kSpins = 500;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Returns when `value` differs from `old`: spins for a while, then sleeps.
template <typename T>
void wait_while(const std::atomic<T>& value, T old) {
  for (int spin = 0; spin < kSpins; ++spin) {
    if (value.load(std::memory_order_acquire) != old) return;
    relax();
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(int threads, const std::function<void()>& on_start, const StartThread& start)
    : ranges_(static_cast<std::size_t>(std::max(threads, 0))) {
  expects(threads >= 1, "a pool has at least its caller's thread");
  for (int thread = 1; thread < threads; ++thread) {
    try {
      helpers_.push_back(start([this, thread, on_start] { help(thread, on_start); }));
    } catch (const std::system_error& error) {
      end();  // otherwise the destructor would wait forever for the started threads
      throw refused_thread(fmt::format("computing thread {} of {}", thread + 1, threads), error);
    }
  }
}

ThreadPool::~ThreadPool() { end(); }

void ThreadPool::end() {
  ends_.store(true, std::memory_order_relaxed);
  loops_.fetch_add(1, std::memory_order_release);
  loops_.notify_all();
}

void ThreadPool::help(int thread, const std::function<void()>& on_start) {
  if (on_start) on_start();
  std::uint32_t seen = 0;
  for (;;) {
    wait_while(loops_, seen);
    seen = loops_.load(std::memory_order_acquire);
    if (ends_.load(std::memory_order_relaxed)) return;
    take_items(thread);
  }
}

void ThreadPool::run_shared(int count, Call call, const void* context) {
  count_.store(count, std::memory_order_relaxed);
  call_.store(call, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  done_.store(0, std::memory_order_relaxed);
  const auto threads = static_cast<int>(ranges_.size());
  for (int thread = 0; thread < threads; ++thread) {
    const auto next = static_cast<std::uint64_t>(first_of(thread, threads, count));
    const auto end = static_cast<std::uint64_t>(first_of(thread + 1, threads, count));
    ranges_[static_cast<std::size_t>(thread)].left.store(next << 32 | end, std::memory_order_release);
  }
  loops_.fetch_add(1, std::memory_order_release);
  loops_.notify_all();
  take_items(0);
  for (int done = done_.load(std::memory_order_acquire); done < count;
       done = done_.load(std::memory_order_acquire))
    wait_while(done_, done);
  if (failed_.exchange(false, std::memory_order_relaxed)) {
    const std::exception_ptr failure = std::exchange(failure_, nullptr);
    std::rethrow_exception(failure);
  }
}

void ThreadPool::take_items(int thread) {
  const auto threads = static_cast<int>(ranges_.size());
  for (int other = 0; other < threads; ++other)
    while (take_one((thread + other) % threads, thread)) {
    }
}

bool ThreadPool::take_one(int from, int thread) {
  auto& range = ranges_[static_cast<std::size_t>(from)].left;
  std::uint64_t left = range.load(std::memory_order_relaxed);
  const bool is_own = from == thread;
  std::uint64_t next = 0, end = 0;
  do {
    next = left >> 32, end = left & 0xffffffff;
    if (next >= end) return false;
  } while (!range.compare_exchange_weak(left, is_own ? left + (std::uint64_t{1} << 32) : left - 1,
                                        std::memory_order_acq_rel, std::memory_order_relaxed));
  // Read only now: the loop that owns this item cannot end before the item is done.
  const Call call = call_.load(std::memory_order_relaxed);
  const void* context = context_.load(std::memory_order_relaxed);
  const int count = count_.load(std::memory_order_relaxed);
  try {
    call(context, static_cast<int>(is_own ? next : end - 1), thread);
  } catch (...) {
    if (!failed_.exchange(true, std::memory_order_relaxed)) failure_ = std::current_exception();
  }
  if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == count) done_.notify_one();
  return true;
}

}  // namespace paceline::base
